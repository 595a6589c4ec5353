// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"testing"

	"github.com/coxswain-hpc/coxswain/internal/reconcile/reference"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"
)

// lagging is a client whose cache shows what is written only later.
type lagging struct {
	client.Client
	objects []client.Object
	applied int
}

func (l *lagging) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	for _, obj := range l.objects {
		switch from := obj.(type) {
		case *corev1.Pod:
			if to, ok := into.(*corev1.Pod); ok && key.Name == from.Name {
				from.DeepCopyInto(to)
			}
		case *slinkyv1beta1.NodeSet:
			if to, ok := into.(*slinkyv1beta1.NodeSet); ok {
				from.DeepCopyInto(to)
			}
		case *corev1.Node:
			if to, ok := into.(*corev1.Node); ok {
				from.DeepCopyInto(to)
			}
		}
	}
	return nil
}

func (l *lagging) Scheme() *runtime.Scheme { return clientgoscheme.Scheme }

func (l *lagging) Apply(_ context.Context, obj runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
	l.applied++
	if pod, ok := obj.(*corev1ac.PodApplyConfiguration); ok {
		pod.WithResourceVersion("8")
	}
	return nil
}

func TestAWriteIsNotMadeAgainWhileTheCacheDoesNotShowIt(t *testing.T) {
	isController := true
	worker := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "w-0", UID: "1", ResourceVersion: "7", OwnerReferences: []metav1.OwnerReference{
			{APIVersion: slinkyv1beta1.GroupVersion.String(), Kind: "NodeSet", Name: "w", Controller: &isController},
		}},
		Spec: corev1.PodSpec{NodeName: "kube-0"},
	}
	// Its Kubernetes node is cordoned, which is to be marked on the pod.
	host := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "kube-0"}, Spec: corev1.NodeSpec{Unschedulable: true}}
	cache := &lagging{objects: []client.Object{worker, &slinkyv1beta1.NodeSet{}, host}}
	r := &reconciler{Base: reconcile.Base{Reader: reference.Reader{Client: cache}, Applier: kube.NewApplier(cache, cache), Clock: clock.RealClock{}}, caches: slurmcache.NewRegistry(slurmcache.Options{})}
	reconcile := func(want int, when string) {
		t.Helper()
		if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: pod("w-0")}); err != nil {
			t.Fatal(err)
		}
		if cache.applied != want {
			t.Errorf("%s there were %d writes, want %d", when, cache.applied, want)
		}
	}
	reconcile(1, "at first")
	reconcile(1, "while the cache lags behind")
	worker.ResourceVersion = "9" // somebody else's change, which has undone ours
	reconcile(2, "when the cache has caught up")
	worker.UID, worker.ResourceVersion = "2", "3"
	reconcile(3, "of another pod of the name")
	r.forget(pod("w-0"))
	reconcile(4, "of a pod that was forgotten")

	behind := func(pod *corev1.Pod) bool {
		t.Helper()
		behind, err := r.Applier.Behind(t.Context(), pod)
		if err != nil {
			t.Fatal(err)
		}
		return behind
	}
	r.Applier.Deleted(worker, worker)
	if !behind(worker) {
		t.Error("a pod that was deleted is deleted again while the cache does not show that")
	}
	gone := worker.DeepCopy()
	gone.DeletionTimestamp = &metav1.Time{Time: now}
	if behind(gone) {
		t.Error("it is waited for although the cache shows the deletion")
	}
	r.Applier.Deleted(worker, worker)
	worker.UID = "3"
	if behind(worker) {
		t.Error("another pod of the name waits")
	}
}
