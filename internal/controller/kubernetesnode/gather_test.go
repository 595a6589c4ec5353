// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetesnode

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/coxswain-hpc/coxswain/internal/health"
	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"
	"github.com/coxswain-hpc/coxswain/internal/reconcile/reference"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
)

// cache is a client that has one Node.
type cache struct {
	client.Client
	node corev1.Node
}

func (c *cache) Scheme() *runtime.Scheme { return scheme.Scheme }

func (c *cache) Get(_ context.Context, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	c.node.DeepCopyInto(o.(*corev1.Node))
	return nil
}

func (c *cache) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

func TestAWorkerThatIsRegisteredUnderAnotherNameIsNotKnownToBeFree(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "w-0"}, Status: corev1.PodStatus{PodIP: "10.0.0.1"}}
	for name, want := range map[string]node.Answer{"10.0.0.1": node.Unknown, "10.0.0.2": node.No} {
		w := health.Worker{Slurm: "w-0", Known: node.Unknown}
		readSnapshot(&w, pod, slurmcache.NewSnapshot(time.Now(), slurmcache.Fresh, rest.Node{Name: "other", Address: name, State: []string{"ALLOCATED"}}))
		if w.Known != want {
			t.Errorf("with another node at %s Slurm has it: %s", name, w.Known)
		}
	}
}

func TestForWhichPodsAMachineMayBeRebootedAndReplaced(t *testing.T) {
	ofSet := metav1.OwnerReference{APIVersion: "slinky.slurm.net/v1beta1", Kind: "NodeSet", Name: "w", Controller: new(true)}
	for name, tt := range map[string]struct {
		namespaces []string
		owner      func(*metav1.OwnerReference)
		want       bool
	}{
		"a machine may be rebooted for a worker of a NodeSet":                           {want: true},
		"a machine may be rebooted in a namespace that may ask for it":                  {namespaces: []string{"a", "slurm"}, want: true},
		"a machine may not be rebooted in another namespace":                            {namespaces: []string{"a"}},
		"a machine may not be rebooted for a pod that has the labels of a worker alone": {owner: func(o *metav1.OwnerReference) { o.Controller = nil }},
		"a machine may not be rebooted for a pod of a NodeSet of another API":           {owner: func(o *metav1.OwnerReference) { o.APIVersion = "slinky.slurm.net.example/v1" }},
		"a machine may not be rebooted for a pod of something else than a NodeSet":      {owner: func(o *metav1.OwnerReference) { o.Kind = "LoginSet" }},
		"a machine may be rebooted for a worker of a NodeSet in an older version":       {owner: func(o *metav1.OwnerReference) { o.APIVersion = "slinky.slurm.net/v1alpha1" }, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			owner := ofSet
			if tt.owner != nil {
				tt.owner(&owner)
			}
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "slurm", Name: "w-0", OwnerReferences: []metav1.OwnerReference{owner}}}
			r := &reconciler{health: health.Conditions{Namespaces: tt.namespaces}}
			if got := r.asks(pod); got != tt.want {
				t.Errorf("it may be: %t", got)
			}
		})
	}
}

func TestNoNodeBeginsUntilTheCacheShowsTheLastOneThatDid(t *testing.T) {
	version := func(v string) corev1.Node {
		return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "first", UID: "1", ResourceVersion: v}}
	}
	begun := version("12")
	c := &cache{node: version("11")}
	r := &reconciler{Base: reconcile.Base{Reader: reference.Reader{Client: c}, Applier: kube.NewApplier(c, c)}, begun: &begun}
	r.Applier.Changed(&c.node, &begun)
	second := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "second"}}
	for range 2 { // looking does not make it so
		if _, behind, err := r.countOthers(t.Context(), &second); err != nil || !behind {
			t.Errorf("the cache is behind: %t, %v", behind, err)
		}
	}
	c.node = version("12")
	if _, behind, err := r.countOthers(t.Context(), &second); err != nil || behind || r.begun != nil {
		t.Errorf("the cache is behind: %t, %v, and waits for %v", behind, err, r.begun)
	}
}
