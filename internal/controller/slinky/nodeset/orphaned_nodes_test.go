// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"testing"

	"github.com/coxswain-hpc/coxswain/internal/reconcile/reference"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"
	"github.com/coxswain-hpc/coxswain/internal/slurm/token"
)

// What a NodeSet has put off while Slurm did not answer must not wait for another change.
func TestThatSlurmIsTrustedAgainWakesTheNodeSetsOfItsCluster(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := slinkyv1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	nodeSet := func(name, controller string) *slinkyv1beta1.NodeSet {
		n := &slinkyv1beta1.NodeSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
		n.Spec.ControllerRef.Name = controller
		return n
	}
	cluster := fake.NewClientBuilder().WithScheme(scheme).WithObjects(nodeSet("ours", "demo"), nodeSet("another", "other")).
		WithIndex(&slinkyv1beta1.NodeSet{}, reference.Index, func(o client.Object) []string {
			n, _ := o.(*slinkyv1beta1.NodeSet)
			return references(n)
		}).Build()
	caches := slurmcache.NewRegistry(slurmcache.Options{})
	defer caches.Close()
	key := slurmcache.Key{Namespace: "ns", Name: "demo"}
	signed, err := token.NewSigned(make([]byte, 32), "slurm", 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := caches.Set(key, slurmcache.Config{Endpoint: "http://127.0.0.1:1", Issuer: signed}); err != nil {
		t.Fatal(err)
	}
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]())
	defer queue.ShutDown()
	r := &reconciler{Base: reconcile.Base{Reader: reference.Reader{Client: cluster}}, caches: caches}
	r.wake(t.Context(), queue, slurmcache.Change{Cluster: key})
	if n := queue.Len(); n != 1 {
		t.Fatalf("%d NodeSets are woken", n)
	}
	if woken, _ := queue.Get(); woken.Name != "ours" {
		t.Errorf("NodeSet %s is woken", woken.Name)
	}
}
