// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

const slurmctldPod = `{metadata: {name: %s, labels: {app.kubernetes.io/name: slurmctld, app.kubernetes.io/instance: demo, app.kubernetes.io/component: controller,
	app.kubernetes.io/managed-by: coxswain}}, spec: {containers: [{name: slurmctld, image: x}]}}`

// expectActive waits until the Service leads to one pod alone.
func expectActive(o *operator.Operator, t *testing.T, want string) {
	t.Helper()
	apiserver.Eventually(t, func() error {
		for _, name := range []string{"demo-controller-0", "demo-controller-1"} {
			label := operator.Get[corev1.Pod](o, name).Labels["controller.slinky.slurm.net/active"]
			if (label == "true") != (name == want) {
				return fmt.Errorf("the label of %s is %q", name, label)
			}
		}
		return nil
	})
}

func TestTheServiceFollowsTheActiveSlurmctld(t *testing.T) {
	t.Parallel()
	const up, away = "No error", "Connection refused"
	o := operator.Start(t, "controller", "restapi")
	operator.Create[slinkyv1beta1.Controller](o, `{metadata: {name: demo}, spec: {ha: {enabled: true}, persistence: {enabled: true, existingClaim: shared}}}`)
	operator.ExpectCondition[slinkyv1beta1.Controller](o, "demo", "Ready", metav1.ConditionFalse, "ReferenceNotFound")
	operator.Create[corev1.PersistentVolumeClaim](o, `{metadata: {name: shared}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}`)
	message := operator.ExpectCondition[slinkyv1beta1.Controller](o, "demo", "Stalled", metav1.ConditionTrue, "InvalidSpec")
	if want := "spec.persistence.existingClaim: PersistentVolumeClaim shared has access modes [ReadWriteOnce] and not ReadWriteMany; all slurmctlds need it at the same time"; message != want {
		t.Errorf("%q, want %q", message, want)
	}
	claim := operator.Get[corev1.PersistentVolumeClaim](o, "shared")
	claim.Finalizers = nil
	if err := o.User.Update(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	operator.Delete[corev1.PersistentVolumeClaim](o, "shared")
	operator.Create[corev1.PersistentVolumeClaim](o, `{metadata: {name: shared}, spec: {accessModes: [ReadWriteMany], resources: {requests: {storage: 1Gi}}}}`)
	apiserver.Eventually(t, func() error {
		if set := operator.Get[appsv1.StatefulSet](o, "demo-controller"); *set.Spec.Replicas != 2 || set.Spec.ServiceName != "demo-controller-internal" {
			return fmt.Errorf("the StatefulSet is not the one that it should be: %+v", set.Spec)
		}
		return nil
	})
	for _, name := range []string{"demo-controller-0", "demo-controller-1"} {
		operator.Create[corev1.Pod](o, fmt.Sprintf(slurmctldPod, name))
	}
	// No slurmctld can be asked, and slurmd needs one to ask for its configuration.
	expectActive(o, t, "demo-controller-0")
	operator.ExpectCondition[slinkyv1beta1.Controller](o, "demo", "HighlyAvailable", metav1.ConditionUnknown, "NotAsked")

	o.Slurm.SetControllers(fake.Controller{Hostname: "demo-controller-0", Status: up}, fake.Controller{Hostname: "demo-controller-1", Status: up})
	operator.Create[slinkyv1beta1.RestApi](o, operator.ARestAPI)
	operator.ExpectCondition[slinkyv1beta1.Controller](o, "demo", "HighlyAvailable", metav1.ConditionTrue, "BackupReady")
	o.Slurm.SetControllers(fake.Controller{Hostname: "demo-controller-0", Status: away}, fake.Controller{Hostname: "demo-controller-1", Status: up})
	message = operator.ExpectCondition[slinkyv1beta1.Controller](o, "demo", "HighlyAvailable", metav1.ConditionFalse, "BackupMissing")
	if want := "1 of 2 slurmctlds answer; not demo-controller-0 (Connection refused)"; message != want {
		t.Errorf("%q, want %q", message, want)
	}
	expectActive(o, t, "demo-controller-1")
	o.Slurm.SetControllers(fake.Controller{Hostname: "demo-controller-0", Status: away}, fake.Controller{Hostname: "demo-controller-1", Status: away})
	apiserver.Eventually(t, func() error {
		if m := operator.ExpectCondition[slinkyv1beta1.Controller](o, "demo", "HighlyAvailable", metav1.ConditionFalse, "BackupMissing"); m == message {
			return fmt.Errorf("the message is still %q", m)
		}
		return nil
	})
	expectActive(o, t, "demo-controller-1")
	o.Slurm.SetControllers(fake.Controller{Hostname: "demo-controller-0", Status: up}, fake.Controller{Hostname: "demo-controller-1", Status: up})
	expectActive(o, t, "demo-controller-0")

	before := operator.Get[appsv1.StatefulSet](o, "demo-controller").UID
	operator.Change(o, "demo", func(c *slinkyv1beta1.Controller) { c.Spec.HA.Enabled = false })
	apiserver.Eventually(t, func() error {
		set := operator.Get[appsv1.StatefulSet](o, "demo-controller")
		if set.DeletionTimestamp != nil {
			// The garbage collector, which is not there, has orphaned the pods.
			set.Finalizers = nil
			return errors.Join(errors.New("it was on its way out"), o.User.Update(t.Context(), set))
		}
		if set.UID == before || *set.Spec.Replicas != 1 || set.Spec.ServiceName != "demo-controller" {
			return fmt.Errorf("the StatefulSet is not the one that it should be: %+v", set.Spec)
		}
		if operator.Exists[corev1.Service](o, "demo-controller-internal") {
			return errors.New("there is still a Service demo-controller-internal")
		}
		return nil
	})
}
