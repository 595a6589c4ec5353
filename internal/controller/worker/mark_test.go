// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/controller/worker/workerplan"
	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/testing/kubesim"
)

// An apply removes what it leaves out. So whatever a former leader writes to a pod might end a protection that it does not know, just as a
// job starts.
func TestAFormerLeaderTakesNoProtectionOffThatItHasNotSeen(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	sim := kubesim.New(scheme)
	c, err := client.New(sim.Config(nil), client.Options{Scheme: scheme, Mapper: sim.Mapper()})
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "w-0", Labels: map[string]string{slinkyv1beta1.LabelCluster: "demo"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "slurmd", Image: "slurmd"}}},
	}
	if err := c.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	write := func(seen *corev1.Pod, action workerplan.Action) bool {
		t.Helper()
		r := &reconciler{} // another process each time
		r.Client, r.Clock, r.Applier = c, clock.RealClock{}, kube.NewApplier(c, c)
		marked, err := r.mark(t.Context(), &scope{pod: seen, set: &slinkyv1beta1.NodeSet{}, node: "w-0", maxWrites: maxWrites, action: action})
		if err != nil {
			t.Fatal(err)
		}
		return marked
	}
	protected := func() *corev1.Pod {
		t.Helper()
		var live corev1.Pod
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(pod), &live); err != nil {
			t.Fatal(err)
		}
		if live.Labels[slinkyv1beta1.LabelPodProtect] == "" {
			t.Errorf("the worker is not protected any more: %v", live.Labels)
		}
		return &live
	}
	before := pod.DeepCopy()
	if !write(pod, workerplan.Action{StateChange: workerplan.StateChange{Undrain: true}, Marks: workerplan.Marks{Protected: node.Yes}}) {
		t.Fatal("the leader does not protect the worker")
	}
	protected()
	deadline := workerplan.Action{Marks: workerplan.Marks{Deadline: time.Unix(1795172262, 0), DeadlineKnown: true}}
	if write(before, deadline) {
		t.Error("a write of a former leader is not refused")
	}
	if live := protected(); !write(live, deadline) {
		t.Error("whoever has seen the protection cannot write")
	}
	protected()
}
