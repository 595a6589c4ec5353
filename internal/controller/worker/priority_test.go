// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
)

func TestADrainDoesNotWaitForWhatIsShownOfOthers(t *testing.T) {
	queue := priorityqueue.New[ctrl.Request]("test")
	defer queue.ShutDown()
	for i := range 100 {
		queue.Add(ctrl.Request{NamespacedName: pod(fmt.Sprintf("w-%d", i))})
	}
	cordoned := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "w-99"}}
	withHighPriority(reconcile.SameName).Update(t.Context(), event.UpdateEvent{ObjectNew: cordoned}, queue)
	if next, priority, _ := queue.GetWithPriority(); next.Name != "w-99" || priority != highPriority {
		t.Errorf("next is %s with priority %d", next.Name, priority)
	}
	if next, priority, _ := queue.GetWithPriority(); next.Name == "w-99" || priority != defaultPriority {
		t.Errorf("then comes %s with priority %d", next.Name, priority)
	}
}

func TestWhatAWorkerComesBackForIsNotUrgent(t *testing.T) {
	r := &reconciler{caches: slurmcache.NewRegistry(slurmcache.Options{})}
	r.Client, r.Applier = &lagging{}, kube.NewApplier(&lagging{}, nil)
	if result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: pod("w-0")}); err != nil || result.Priority == nil || *result.Priority != defaultPriority {
		t.Errorf("the result is %+v, %v", result, err)
	}
}

func TestWhatIsUrgentAboutAPod(t *testing.T) {
	with := func(pairs ...string) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Labels: map[string]string{slinkyv1beta1.LabelCluster: "demo"}, Annotations: map[string]string{},
		}}
		for i := 0; i < len(pairs); i += 2 {
			p.Annotations[pairs[i]] = pairs[i+1]
		}
		return p
	}
	other := with(slinkyv1beta1.AnnotationPodCordon, "true")
	other.Labels = nil
	for name, test := range map[string]struct {
		before, after *corev1.Pod
		want          bool
	}{
		"the pod is cordoned":                {with(), with(slinkyv1beta1.AnnotationPodCordon, "true"), true},
		"the pod is not cordoned any more":   {with(slinkyv1beta1.AnnotationPodCordon, "true"), with(), true},
		"the pod is retired":                 {with(), with(slinkyv1beta1.AnnotationRetired, "update"), true},
		"the pod stays cordoned":             {with(slinkyv1beta1.AnnotationPodCordon, "true"), with(slinkyv1beta1.AnnotationPodCordon, "true"), false},
		"what is told about the pod changes": {with(), with(slinkyv1beta1.AnnotationPlan, "its turn"), false},
		"the pod is no worker":               {with(), other, false},
	} {
		if got := cordons().Update(event.UpdateEvent{ObjectOld: test.before, ObjectNew: test.after}); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
