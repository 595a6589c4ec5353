// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
	"github.com/coxswain-hpc/coxswain/internal/testing/predecessors"
)

// TestManifestsOfThePredecessorsComeUp takes what both predecessors' charts render as it is, but for the namespace. Pods do
// what a kubelet would have them do; that daemons start with them is for test/e2e.
func TestManifestsOfThePredecessorsComeUp(t *testing.T) {
	manifests := predecessors.Manifests(t)
	left := map[string]bool{}
	for name := range manifests {
		left[name] = true
	}
	for _, files := range [][]string{
		{"slinky-first-default.yaml"}, {"slinky-1.3-default.yaml"}, {"slinky-1.3-rich.yaml"},
		{"soperator-first-slurm-cluster.yaml", "soperator-first-activechecks.yaml", "soperator-first-nodeconfigurator.yaml"},
		{"soperator-5.0-slurm-cluster.yaml", "soperator-5.0-nodesets.yaml", "soperator-5.0-activechecks.yaml", "soperator-5.0-nodeconfigurator.yaml"},
		{"soperator-5.0-accounting.yaml"}, {"soperator-5.0-external-db.yaml"},
		{"soperator-5.0-chart-objects.yaml", "soperator-5.0-small.yaml"}, {"soperator-5.0-small.yaml", "soperator-5.0-chart-objects.yaml"},
	} {
		var objects []*unstructured.Unstructured
		for _, name := range files {
			for _, u := range manifests[name] {
				u := u.DeepCopy()
				if name == files[0] {
					// Kubernetes allocates a port of the nodes once, and the other order has it.
					unstructured.RemoveNestedField(u.Object, "spec", "slurmNodes", "login", "sshdServiceNodePort")
				}
				objects = append(objects, u)
			}
			delete(left, name)
		}
		t.Run(strings.TrimSuffix(files[0], ".yaml"), func(t *testing.T) {
			t.Parallel()
			comesUp(t, objects)
		})
	}
	if len(left) > 0 {
		t.Errorf("nothing tries %v", left)
	}
}

func comesUp(t *testing.T, objects []*unstructured.Unstructured) {
	t.Helper()
	o := operator.Start(t)
	chartsRest(t, o)
	predecessors.JoinChecks(objects)
	for _, u := range objects {
		predecessors.Move(u.Object, u.GetNamespace(), o.Namespace)
		predecessors.FillClaims(u.Object)
		u.SetNamespace(o.Namespace)
		// Some have no namespace, and another test may have made them. Kinds of the Prometheus operator are not served here.
		err := client.IgnoreAlreadyExists(o.User.Create(t.Context(), u))
		if err != nil && (!meta.IsNoMatchError(err) || u.GetKind() != "ServiceMonitor") {
			t.Fatalf("creating %s %s: %v", u.GetKind(), u.GetName(), err)
		}
	}
	apiserver.Eventually(t, func() error {
		o.RunWorkloads()
		o.RunWorkers()
		var open []error
		for _, u := range objects {
			open = append(open, isUp(t, o, u))
		}
		return errors.Join(open...)
	})
}

// isUp returns what keeps an object of the predecessors' kinds from being ready. Slurm jobs of checks do not run in this world, whose
// workers are in no partition: a check may wait for one.
func isUp(t *testing.T, o *operator.Operator, u *unstructured.Unstructured) error {
	t.Helper()
	if group := u.GroupVersionKind().Group; group != nebiusv1.GroupVersion.Group && group != slinkyv1beta1.GroupVersion.Group {
		return nil
	}
	live := u.DeepCopy()
	if err := o.User.Get(t.Context(), client.ObjectKeyFromObject(u), live); err != nil {
		return err
	}
	checkType, _, _ := unstructured.NestedString(live.Object, "spec", "checkType")
	conditions, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
	for _, item := range conditions {
		c, _ := item.(map[string]any)
		// Its database is one of the mariadb-operator, which is not served either: the cluster runs without accounting.
		_, mariadb, _ := unstructured.NestedMap(u.Object, "spec", "slurmNodes", "accounting", "mariadbOperator")
		waits := checkType == "slurmJob" && c["reason"] == "Waiting" && strings.Contains(fmt.Sprint(c["message"]), "has not completed")
		if c["type"] == "Ready" && (c["status"] == "True" || waits || mariadb && c["reason"] == "FieldsNotEffective") {
			return nil
		}
		if c["type"] == "Ready" {
			return fmt.Errorf("%s %s: %v: %v", u.GetKind(), u.GetName(), c["reason"], c["message"])
		}
	}
	return fmt.Errorf("%s %s has no condition Ready", u.GetKind(), u.GetName())
}

// chartsRest makes what the charts render beside custom resources.
func chartsRest(t *testing.T, o *operator.Operator) {
	t.Helper()
	for name, keys := range map[string][]string{
		"slurm-auth-slurm": {"slurm.key"}, "slurm-auth-jwt": {"jwt.key"}, "slurm-auth-jwths256": {"jwt_hs256.key"}, "slurm-sssd-conf": {"sssd.conf"}, "dbpw": {"password"},
		"db": {"password"},
	} {
		data := map[string]string{}
		for _, key := range keys {
			data[key] = strings.Repeat("0123456789abcdef", 4)
		}
		have(t, o, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: name}, StringData: data})
	}
	for name, file := range map[string]string{
		"slurm-scripts": "prolog.sh", "slurm1-slurm-scripts": "prolog.sh", "slurm-prolog-scripts": "00-prolog.sh", "slurm-epilog-slurmctld-scripts": "00-epilog.sh",
	} {
		have(t, o, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: name}, Data: map[string]string{file: "#!/bin/sh\n"}})
	}
	for _, name := range []string{"slurm1-slurm-worker", "soperator-worker-high-priority"} {
		have(t, o, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: 1000})
	}
}

// have makes an object that another test may have made.
func have(t *testing.T, o *operator.Operator, obj client.Object) {
	t.Helper()
	if err := client.IgnoreAlreadyExists(o.User.Create(t.Context(), obj)); err != nil {
		t.Fatalf("creating %T %s: %v", obj, obj.GetName(), err)
	}
}
