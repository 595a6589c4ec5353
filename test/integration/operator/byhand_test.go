// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

func TestDriftIsCorrected(t *testing.T) {
	t.Parallel()
	o := operator.StartCluster(t)
	o.Settle()
	o.Writes.Reset()
	operator.Change(o, "demo-config", func(cm *corev1.ConfigMap) { cm.Data["slurm.conf"] = "ClusterName=mine\n" })
	operator.Change(o, "demo-restapi", func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(5)) })
	operator.Delete[corev1.Service](o, "slurm-workers-demo")
	operator.Delete[corev1.Secret](o, "demo-accounting")
	apiserver.Eventually(t, func() error {
		if text := operator.Get[corev1.ConfigMap](o, "demo-config").Data["slurm.conf"]; !strings.Contains(text, "SlurmctldHost=") {
			return fmt.Errorf("slurm.conf is %q", text)
		}
		if n := *operator.Get[appsv1.Deployment](o, "demo-restapi").Spec.Replicas; n != 1 {
			return fmt.Errorf("there are %d replicas", n)
		}
		if !operator.Exists[corev1.Service](o, "slurm-workers-demo") {
			return fmt.Errorf("the Service is gone")
		}
		if !operator.Exists[corev1.Secret](o, "demo-accounting") {
			return fmt.Errorf("the Secret is gone")
		}
		return nil
	})
	o.Settle()
	if writes := o.Writes.All(); len(writes) < 4 {
		t.Errorf("%d writes: %v", len(writes), writes)
	}
	for _, w := range o.Writes.All() {
		if !strings.HasSuffix(w.Path, "/status") && w.Method != http.MethodPatch {
			t.Errorf("drift is corrected by server-side apply, not by %v", w)
		}
	}
}

// Workers are another matter, since jobs may run on them; and generated keys cannot come back as they were.
func TestWhatIsDeletedByHandComesBackAsItWas(t *testing.T) {
	t.Parallel()
	o := operator.StartCluster(t)
	o.Settle()
	before, content := o.Children(), contents(t, o)
	deleted := map[types.UID]bool{}
	for _, obj := range o.Ours() {
		_, worker := obj.(*corev1.Pod)
		_, key := obj.GetLabels()["coxswain.dev/key"]
		if !worker && !key {
			o.Demolish(obj)
			deleted[obj.GetUID()] = true
		}
	}
	if len(deleted) < 15 {
		t.Errorf("only %d objects were deleted", len(deleted))
	}
	apiserver.Eventually(t, func() error {
		for _, obj := range o.Ours() {
			if deleted[obj.GetUID()] {
				return fmt.Errorf("%T %s is still there", obj, obj.GetName())
			}
		}
		if diff := cmp.Diff(before, o.Children()); diff != "" {
			return fmt.Errorf("not all have come back:\n%s", diff)
		}
		return nil
	})
	o.RunWorkloads()
	o.ExpectReady()
	if diff := cmp.Diff(content, contents(t, o)); diff != "" {
		t.Errorf("what has come back is not what it was:\n%s", diff)
	}
}

// contents returns the contents of the ConfigMaps and Secrets that the operator has made, and the templates of its workloads.
func contents(t *testing.T, o *operator.Operator) map[string]any {
	t.Helper()
	out := map[string]any{}
	for _, obj := range o.Ours() {
		switch x := obj.(type) {
		case *corev1.ConfigMap:
			out["ConfigMap "+x.Name] = x.Data
		case *corev1.Secret:
			out["Secret "+x.Name] = x.Data
		case *appsv1.StatefulSet:
			out["StatefulSet "+x.Name] = x.Spec
		case *appsv1.Deployment:
			out["Deployment "+x.Name] = x.Spec
		}
	}
	return out
}

func TestAUsersConfigMapThatIsDeletedByHandIsMissedAndNothingElseHappens(t *testing.T) {
	t.Parallel()
	o := operator.StartCluster(t)
	const files = `{metadata: {name: files}, data: {plugstack.conf: "#"}}`
	operator.Create[corev1.ConfigMap](o, files)
	operator.Change(o, "demo", func(c *slinkyv1beta1.Controller) {
		c.Spec.ConfigFileRefs = []slinkyv1beta1.ObjectReference{{Name: "files"}}
	})
	operator.ExpectCondition[slinkyv1beta1.Controller](o, "demo", "Stalled", metav1.ConditionFalse, "Reconciled")
	o.Settle()
	o.RunWorkloads()
	o.Settle()
	o.Writes.Reset()
	operator.Delete[corev1.ConfigMap](o, "files")
	message := operator.ExpectCondition[slinkyv1beta1.Controller](o, "demo", "Ready", metav1.ConditionFalse, "ReferenceNotFound")
	if want := "spec.configFileRefs[0]: ConfigMap files does not exist; create it or remove the reference"; message != want {
		t.Errorf("%q, want %q", message, want)
	}
	operator.Create[corev1.ConfigMap](o, files)
	operator.ExpectCondition[slinkyv1beta1.Controller](o, "demo", "Ready", metav1.ConditionTrue, "Available")
	o.Settle()
	for _, w := range o.Writes.All() {
		if !strings.HasSuffix(w.Path, "/status") {
			t.Errorf("something is written because a file of the user's was away: %v", w)
		}
	}
}
