// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcluster

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

func TestAClusterIsComposedAndRolledUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.cluster("demo", demoSpec())
	controller := &slinkyv1beta1.Controller{ObjectMeta: w.meta("demo")}
	accounting := &slinkyv1beta1.Accounting{ObjectMeta: w.meta("demo")}
	rest := &slinkyv1beta1.RestApi{ObjectMeta: w.meta("demo")}
	login := &slinkyv1beta1.LoginSet{ObjectMeta: w.meta("demo-login")}
	workers := &slinkyv1beta1.NodeSet{ObjectMeta: w.meta("demo-worker")}
	w.exists(controller, accounting, rest, login, workers)
	for _, name := range []string{"controller", "accounting", "login", "worker"} {
		w.exists(&corev1.Service{ObjectMeta: w.meta("demo-" + name + "-svc")})
	}
	if !metav1.IsControlledBy(workers, c) {
		t.Error("the NodeSet is not owned by the cluster")
	}
	await(w, c, func(c *nebiusv1.SlurmCluster) error {
		if c.Status.Phase != nebiusv1.PhaseNotAvailable {
			return fmt.Errorf("phase %q", c.Status.Phase)
		}
		return errors.Join(
			condition(c.Status.Conditions, "CommonAvailable", metav1.ConditionTrue, "Available", ""),
			condition(c.Status.Conditions, "ControllersAvailable", metav1.ConditionFalse, "NotAvailable", "Controller demo: has not reported"),
			condition(c.Status.Conditions, "Ready", metav1.ConditionFalse, "Waiting", "Controller demo"),
			condition(c.Status.Conditions, "Reconciling", metav1.ConditionTrue, "Waiting", ""),
			condition(c.Status.Conditions, "SpecEffective", metav1.ConditionTrue, "AllFieldsEffective", ""),
			condition(c.Status.Conditions, "PopulateJailMode", metav1.ConditionTrue, "none", ""))
	})

	report(w, controller, true, nil)
	report(w, accounting, true, nil)
	report(w, rest, true, nil)
	report(w, login, true, func(l *slinkyv1beta1.LoginSet) { l.Status.ReadyReplicas = 1 })
	report(w, workers, false, func(n *slinkyv1beta1.NodeSet) { n.Status.ReadyReplicas = 1 })
	await(w, c, func(c *nebiusv1.SlurmCluster) error {
		return errors.Join(
			condition(c.Status.Conditions, "ControllersAvailable", metav1.ConditionTrue, "Available", ""),
			condition(c.Status.Conditions, "LoginAvailable", metav1.ConditionTrue, "Available", ""),
			condition(c.Status.Conditions, "AccountingAvailable", metav1.ConditionTrue, "Available", ""),
			condition(c.Status.Conditions, "WorkersAvailable", metav1.ConditionFalse, "NotAvailable", "NodeSet demo-worker: 0 pods are ready"))
	})
	report(w, workers, true, func(n *slinkyv1beta1.NodeSet) { n.Status.ReadyReplicas = 2 })
	available := func(c *nebiusv1.SlurmCluster) error {
		if c.Status.Phase != nebiusv1.PhaseAvailable || *c.Status.ReadyWorkers != 2 || *c.Status.ReadyLogin != 1 || c.Status.ObservedGeneration != c.Generation {
			return fmt.Errorf("status %+v", c.Status)
		}
		return condition(c.Status.Conditions, "Ready", metav1.ConditionTrue, "Available", "")
	}
	await(w, c, available)
	w.said("Normal Available")
	quiet(w, c, available)
}

func TestWhatIsNoLongerWantedGoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.cluster("demo", demoSpec())
	accounting := &slinkyv1beta1.Accounting{ObjectMeta: w.meta("demo")}
	workers := &slinkyv1beta1.NodeSet{ObjectMeta: w.meta("demo-worker")}
	w.exists(accounting, workers, &corev1.Service{ObjectMeta: w.meta("demo-worker-svc")})
	edit(w, c, func(c *nebiusv1.SlurmCluster) {
		c.Spec.SlurmNodes.Accounting.Enabled = false
		c.Spec.SlurmNodes.Worker = nil
	})
	w.gone(accounting, workers, &corev1.Service{ObjectMeta: w.meta("demo-accounting-svc")}, &corev1.Service{ObjectMeta: w.meta("demo-worker-svc")})
	w.exists(&slinkyv1beta1.Controller{ObjectMeta: w.meta("demo")}, &slinkyv1beta1.LoginSet{ObjectMeta: w.meta("demo-login")})
	await(w, c, func(c *nebiusv1.SlurmCluster) error {
		return errors.Join(
			condition(c.Status.Conditions, "AccountingAvailable", metav1.ConditionFalse, "Disabled", ""),
			condition(c.Status.Conditions, "WorkersAvailable", metav1.ConditionFalse, "Disabled", ""))
	})
}

func TestAMistakeChangesNothingButTheStatus(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.cluster("demo", demoSpec())
	controller := &slinkyv1beta1.Controller{ObjectMeta: w.meta("demo")}
	w.exists(controller)
	before := controller.Spec.ExtraConf
	edit(w, c, func(c *nebiusv1.SlurmCluster) {
		c.Spec.CustomSlurmConfig = "KillWait=30\nSlurmUser=root\n"
		c.Spec.SlurmNodes.Worker = nil
	})
	await(w, c, func(c *nebiusv1.SlurmCluster) error {
		return errors.Join(
			condition(c.Status.Conditions, "Stalled", metav1.ConditionTrue, "InvalidSpec", "spec.customSlurmConfig: line 2: SlurmUser: it is set by the operator"),
			condition(c.Status.Conditions, "Ready", metav1.ConditionFalse, "InvalidSpec", ""),
			condition(c.Status.Conditions, "CommonAvailable", metav1.ConditionFalse, "NotAvailable", ""))
	})
	w.said("Warning InvalidSpec spec.customSlurmConfig: line 2")
	w.exists(&slinkyv1beta1.NodeSet{ObjectMeta: w.meta("demo-worker")})
	w.exists(controller)
	if controller.Spec.ExtraConf != before {
		t.Error("a configuration with a mistake was applied in part")
	}
	edit(w, c, func(c *nebiusv1.SlurmCluster) { c.Spec.CustomSlurmConfig = "KillWait=30" })
	await(w, controller, func(o *slinkyv1beta1.Controller) error {
		if !strings.Contains(o.Spec.ExtraConf, "KillWait=30\n") {
			return errors.New("the corrected configuration is not applied")
		}
		return nil
	})
	w.gone(&slinkyv1beta1.NodeSet{ObjectMeta: w.meta("demo-worker")})
}

func TestADeletedClusterNamesTheClaimsItLeaves(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.cluster("demo", nebiusv1.SlurmClusterSpec{})
	w.exists(&slinkyv1beta1.Controller{ObjectMeta: w.meta("demo")})
	for name, labels := range map[string]map[string]string{
		"statesave-demo-controller-0":  {"app.kubernetes.io/name": "slurmctld", "app.kubernetes.io/instance": "demo"},
		"data-demo-database-0":         {"app.kubernetes.io/name": "mariadb", "app.kubernetes.io/instance": "demo"},
		"local-demo-worker-0":          {"app.kubernetes.io/name": "slurmd", "app.kubernetes.io/instance": "demo-worker", "slinky.slurm.net/cluster": "demo"},
		"statesave-other-controller-0": {"app.kubernetes.io/name": "slurmctld", "app.kubernetes.io/instance": "other"},
		"home":                         {},
	} {
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: w.meta(name), Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		}}
		claim.Labels = labels
		w.create(claim)
	}
	if err := w.user.Delete(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	w.said("Warning PersistentVolumeClaimsKept The data of the cluster is kept in 3 PersistentVolumeClaims, for a new cluster of the same name; " +
		"delete them when it is not needed: data-demo-database-0, local-demo-worker-0, statesave-demo-controller-0")
}

func TestAForeignObjectIsLeftAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create(&corev1.ConfigMap{ObjectMeta: w.meta("demo-slurm-configs"), Data: map[string]string{"mine": "yes"}})
	c := w.cluster("demo", nebiusv1.SlurmClusterSpec{})
	await(w, c, func(c *nebiusv1.SlurmCluster) error {
		return condition(c.Status.Conditions, "Stalled", metav1.ConditionTrue, "NameConflict", "demo-slurm-configs")
	})
	config := &corev1.ConfigMap{ObjectMeta: w.meta("demo-slurm-configs")}
	w.exists(config)
	if config.Data["mine"] != "yes" || len(config.Data) != 1 {
		t.Errorf("the foreign ConfigMap was changed: %v", config.Data)
	}
}

func TestAChangeThatTheComponentForbidsIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.cluster("demo", nebiusv1.SlurmClusterSpec{})
	w.exists(&slinkyv1beta1.Controller{ObjectMeta: w.meta("demo")})
	edit(w, c, func(c *nebiusv1.SlurmCluster) {
		source := nebiusv1.VolumeSource{Name: "state"}
		source.Raw = []byte(`{"persistentVolumeClaim": {"claimName": "state"}}`)
		c.Spec.VolumeSources = []nebiusv1.VolumeSource{source}
		c.Spec.SlurmNodes.Controller.Volumes.Spool = &nebiusv1.NodeVolume{VolumeSourceName: "state"}
	})
	await(w, c, func(c *nebiusv1.SlurmCluster) error {
		return condition(c.Status.Conditions, "Stalled", metav1.ConditionTrue, "InvalidSpec", "persistence.existingClaim cannot be changed")
	})
}
