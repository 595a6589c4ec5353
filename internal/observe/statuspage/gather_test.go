// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package statuspage

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
	"github.com/coxswain-hpc/coxswain/internal/testing/manifest"
)

// objects returns a cluster with two workers, one of which is out of service, and what belongs to others.
func objects(t *testing.T) []client.Object {
	t.Helper()
	return []client.Object{
		manifest.Parse[nebiusv1.SlurmCluster](t, "metadata: {name: demo, namespace: slurm}\nstatus: {conditions: [{type: Ready, status: 'True', reason: Available, message: '', lastTransitionTime: null}]}"),
		manifest.Parse[nebiusv1.SlurmCluster](t, "metadata: {name: broken, namespace: slurm}\nstatus: {conditions: [{type: Stalled, status: 'True', reason: InvalidSpec, message: no, lastTransitionTime: null}]}"),
		manifest.Parse[slinkyv1beta1.Controller](t, "metadata: {name: demo, namespace: slurm}"),
		manifest.Parse[slinkyv1beta1.Controller](t, "metadata: {name: demo, namespace: elsewhere}"),
		manifest.Parse[slinkyv1beta1.NodeSet](t, "metadata: {name: cpu, namespace: slurm, annotations: {coxswain.dev/dry-run: 'true'}}\nspec: {controllerRef: {name: demo}}\nstatus: {desired: 2}"),
		manifest.Parse[slinkyv1beta1.NodeSet](t, "metadata: {name: of-another, namespace: slurm}\nspec: {controllerRef: {name: another}}"),
		manifest.Parse[corev1.Pod](t, "metadata: {name: cpu-0, namespace: slurm, labels: {slinky.slurm.net/cluster: demo}, annotations: {coxswain.dev/plan: goes after cpu-1}, ownerReferences: [{apiVersion: slinky.slurm.net/v1beta1, kind: NodeSet, name: cpu, uid: u, controller: true}]}\n"+
			"spec: {hostname: cpu-0}\nstatus: {conditions: [{type: coxswain.dev/OutOfService, status: 'True', reason: FailedCheck, message: a check}, {type: coxswain.dev/NeedsAttention, status: 'False', reason: Was}]}"),
		manifest.Parse[corev1.Pod](t, "metadata: {name: cpu-1, namespace: slurm, labels: {slinky.slurm.net/cluster: demo}, ownerReferences: [{apiVersion: slinky.slurm.net/v1beta1, kind: NodeSet, name: cpu, uid: u, controller: true}]}\n"+
			"spec: {hostname: cpu-1}\nstatus: {conditions: [{type: coxswain.dev/NeedsAttention, status: 'True', reason: StuckTerminating}]}"),
		manifest.Parse[corev1.Pod](t, "metadata: {name: x-0, namespace: elsewhere, labels: {slinky.slurm.net/cluster: demo}}"),
	}
}

func gatherer(t *testing.T, caches *slurmcache.Registry) *Gatherer {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, slinkyv1beta1.AddToScheme, nebiusv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	elected := make(chan struct{})
	close(elected)
	reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects(t)...).Build()
	return &Gatherer{Reader: reader, Caches: caches, Elected: elected, SlurmClusters: true, Now: noon}
}

func TestWhatIsGatheredWithoutALink(t *testing.T) {
	caches := slurmcache.NewRegistry(slurmcache.Options{})
	defer caches.Close()
	f, found, err := gatherer(t, caches).Cluster(t.Context(), demo())
	if err != nil || !found {
		t.Fatalf("%t, %v", found, err)
	}
	f.Nodes = byName(f.Nodes)
	want := Facts{
		Now: noon(), Cluster: demo(),
		Objects: []Object{
			{Kind: "SlurmCluster", Name: "demo", Conditions: []metav1.Condition{{Type: "Ready", Status: "True", Reason: "Available"}}},
			{Kind: "Controller", Name: "demo"}, {Kind: "NodeSet", Name: "cpu"},
		},
		NodeSets: []NodeSet{{Name: "cpu", DryRun: true, Status: slinkyv1beta1.NodeSetStatus{Desired: 2}}},
		Nodes: []Node{
			{Name: "cpu-0", NodeSet: "cpu", OutOfService: "FailedCheck: a check", Plan: "goes after cpu-1"},
			{Name: "cpu-1", NodeSet: "cpu", Attention: "StuckTerminating"},
		},
	}
	if diff := cmp.Diff(want, f); diff != "" {
		t.Error(diff)
	}
}

func TestWhichClustersThereAre(t *testing.T) {
	caches := slurmcache.NewRegistry(slurmcache.Options{})
	defer caches.Close()
	g := gatherer(t, caches)
	all, err := g.Clusters(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range all {
		got = append(got, f.Cluster.String())
	}
	if diff := cmp.Diff([]string{"elsewhere/demo", "slurm/broken", "slurm/demo"}, got); diff != "" {
		t.Errorf("a SlurmCluster without a Controller is one, too:\n%s", diff)
	}
	if _, found, err := g.Cluster(t.Context(), slurmcache.Key{Namespace: "slurm", Name: "nothing"}); found || err != nil {
		t.Errorf("a cluster that is not there: %t, %v", found, err)
	}
	g.SlurmClusters, g.Elected = false, make(chan struct{})
	if _, found, err := g.Cluster(t.Context(), slurmcache.Key{Namespace: "slurm", Name: "broken"}); found || err != nil {
		t.Errorf("without SlurmClusters: %t, %v", found, err)
	}
	if f, _, err := g.Cluster(t.Context(), demo()); err != nil || !f.Waiting {
		t.Errorf("a replica that waits for the lease does not say so: %v", err)
	}
}

func TestNothingIsMadeUpOfASnapshot(t *testing.T) {
	caches := slurmcache.NewRegistry(slurmcache.Options{})
	defer caches.Close()
	g := gatherer(t, caches)
	for trust, want := range map[slurmcache.Trust]node.Answer{slurmcache.Fresh: node.No, slurmcache.Stale: node.Unknown, slurmcache.Suspect: node.Unknown} {
		nodes, err := g.nodes(t.Context(), demo(), slurmcache.NewSnapshot(noon(), trust))
		if err != nil || len(nodes) != 2 || nodes[0].Registered != want {
			t.Errorf("in a %s snapshot without nodes they are %v: %v", trust, nodes, err)
		}
	}
}

func TestEveryChangeOfAnObjectWakesTheServer(t *testing.T) {
	g := gatherer(t, nil)
	informers := &informertest.FakeInformers{Scheme: g.Reader.(client.Client).Scheme()}
	woken := 0
	if err := g.Watch(t.Context(), informers, func() { woken++ }); err != nil {
		t.Fatal(err)
	}
	kinds := []client.Object{&slinkyv1beta1.Controller{}, &slinkyv1beta1.NodeSet{}, &nebiusv1.SlurmCluster{}, &corev1.Pod{}}
	for _, kind := range kinds {
		informer, err := informers.FakeInformerFor(t.Context(), kind)
		if err != nil {
			t.Fatal(err)
		}
		informer.Add(kind)
		informer.Update(kind, kind)
		informer.Delete(kind)
	}
	if want := 3 * len(kinds); woken != want {
		t.Errorf("it was woken %d times, want %d", woken, want)
	}
}
