// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

func TestEveryObjectOfTheContractIsMade(t *testing.T) {
	t.Parallel()
	o := operator.StartCluster(t)
	const (
		controller = "slurmctld demo controller of Controller/demo*"
		accounting = "slurmdbd demo accounting of Accounting/demo*"
		database   = "mariadb demo database of Accounting/demo*"
		restapi    = "slurmrestd demo restapi of RestApi/demo*"
		login      = "login demo-login login of LoginSet/demo-login*"
		worker     = "slurmd demo-gpu worker of NodeSet/demo-gpu*"
		shared     = "slurmd  worker of NodeSet/demo-gpu"
	)
	want := map[string]string{
		"ConfigMap demo-config": controller, "Service demo-controller": controller, "StatefulSet demo-controller": controller,
		"Secret demo-accounting": accounting, "Service demo-accounting": accounting, "StatefulSet demo-accounting": accounting,
		"Service demo-database": database, "StatefulSet demo-database": database, "Secret demo-auth-database": "   of Accounting/demo",
		"Service demo-restapi": restapi, "Deployment demo-restapi": restapi, "NetworkPolicy demo-restapi": restapi,
		"EndpointSlice demo-login-hosts": login, "Service slurm-logins-demo": controller,
		"ConfigMap demo-login-ssh-config": login, "ConfigMap demo-login-users": login, "Secret demo-login-ssh-host-keys": "   of LoginSet/demo-login",
		"Service demo-login": login, "Deployment demo-login": login,
		"Pod demo-gpu-0": worker, "Pod demo-gpu-1": worker,
		"Service slurm-workers-demo": shared, "PodDisruptionBudget slurm-workers-pdb-demo": shared,
	}
	if diff := cmp.Diff(want, o.Children()); diff != "" {
		t.Error(diff)
	}
	apiserver.Eventually(t, func() error { // Slurm's word comes after the pods'
		n := operator.Get[slinkyv1beta1.NodeSet](o, "demo-gpu")
		if got, want := n.Status.Selector, "app.kubernetes.io/instance=demo-gpu,app.kubernetes.io/name=slurmd"; got != want {
			return fmt.Errorf("status.selector is %s, want %s", got, want)
		}
		if n.Status.SlurmIdle != 2 || n.Status.Replicas != 2 || n.Status.UpdatedReplicas != 2 {
			return fmt.Errorf("status %+v", n.Status)
		}
		return nil
	})
}

func TestAtRestNothingIsWritten(t *testing.T) {
	t.Parallel()
	o := operator.StartCluster(t)
	o.Settle()
	t.Logf("made and running after %d writes, %d of them to status", len(o.Writes.All()), len(o.Writes.Of("status")))
	objects := []client.Object{
		operator.Get[slinkyv1beta1.Controller](o, "demo"), operator.Get[slinkyv1beta1.Accounting](o, "demo"), operator.Get[slinkyv1beta1.RestApi](o, "demo"),
		operator.Get[slinkyv1beta1.LoginSet](o, "demo-login"), operator.Get[slinkyv1beta1.NodeSet](o, "demo-gpu"),
		operator.Get[corev1.Secret](o, "keys"), operator.Get[corev1.Secret](o, "demo-auth-database"), operator.Get[corev1.ConfigMap](o, "demo-config"),
		operator.Get[appsv1.StatefulSet](o, "demo-controller"), operator.Get[corev1.Service](o, "slurm-workers-demo"), operator.Get[corev1.Pod](o, "demo-gpu-0"),
	}

	o.Writes.Reset()
	operator.Create[corev1.Secret](o, `{metadata: {name: unrelated}, stringData: {a: b}}`)
	operator.Create[corev1.ConfigMap](o, `{metadata: {name: unrelated}, data: {a: b}}`)
	for _, obj := range objects {
		patch := client.MergeFrom(obj.DeepCopyObject().(client.Object))
		labels := maps.Clone(obj.GetLabels())
		if labels == nil {
			labels = map[string]string{}
		}
		// It is a label of others on an object of ours, or on a user's; the components' own labels go to their children.
		if _, custom := obj.(interface{ GetConditions() []metav1.Condition }); !custom {
			labels["touched"] = "yes"
		} else {
			obj.SetAnnotations(map[string]string{"kubectl.kubernetes.io/touched": "yes"})
		}
		obj.SetLabels(labels)
		if err := o.User.Patch(t.Context(), obj, patch); err != nil {
			t.Fatal(err)
		}
	}
	o.Settle()
	o.Writes.ExpectNone(t)

	o.Writes.Reset()
	o.Restart()
	o.Settle()
	o.Writes.ExpectNone(t)
}

func TestControllersRunWithoutEachOther(t *testing.T) {
	t.Parallel()
	o := operator.Start(t, "controller")
	operator.Create[slinkyv1beta1.NodeSet](o, `{metadata: {name: w}, spec: {controllerRef: {name: demo}, partition: {enabled: true}}}`)
	operator.Create[slinkyv1beta1.Controller](o, `{metadata: {name: demo}, spec: {}}`)
	apiserver.Eventually(t, func() error {
		if cm := operator.Get[corev1.ConfigMap](o, "demo-config"); !strings.Contains(cm.Data["slurm.conf"], "PartitionName=w Nodes=w") {
			return fmt.Errorf("%+v", cm)
		}
		return nil
	})
	if n := operator.Get[slinkyv1beta1.NodeSet](o, "w"); len(n.Status.Conditions) > 0 || len(o.Workers()) > 0 {
		t.Errorf("somebody cares for the NodeSet: %+v", n.Status)
	}
}
