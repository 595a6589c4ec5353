// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
)

// nodeSetsOfACluster is among how many NodeSets the workers of a SlurmCluster are divided.
const nodeSetsOfACluster = 10

// TestSlurmCluster looks at a SlurmCluster with a jail at rest, with as many workers as bench.sizes has.
func TestSlurmCluster(t *testing.T) {
	for size := range strings.SplitSeq(*sizes, ",") {
		n, err := strconv.Atoi(size)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(size, func(t *testing.T) { newBench(t, n-n%nodeSetsOfACluster).slurmCluster() })
	}
}

func (b *bench) slurmCluster() {
	b.makeKubeNodes()
	began := time.Now()
	for i := range nodeSetsOfACluster {
		add[nebiusv1alpha1.NodeSet](b, fmt.Sprintf(`{metadata: {name: set-%d}, spec: {replicas: %d}}`, i, b.size/nodeSetsOfACluster))
	}
	add[nebiusv1.SlurmCluster](b, `{metadata: {name: demo}, spec: {maintenance: skipPopulateJail,
	  volumeSources: [{name: jail, nfs: {server: files, path: /jail}}],
	  slurmNodes: {accounting: {enabled: true, embeddedDB: {enabled: true}}, rest: {enabled: true},
	    controller: {volumes: {jail: {volumeSourceName: jail}}}, login: {size: 2, volumes: {jail: {volumeSourceName: jail}}}}}}`)
	b.wait(serves)
	b.available()
	b.settle()
	b.tell("create a SlurmCluster", "it is available and at rest", time.Since(began).Seconds(), "s")
	b.rests()

	b.process.stop()
	b.age()
	before := b.spent()
	b.process = b.start()
	b.led()
	b.settle()
	after := b.spent()
	const scenario = "restart beside a SlurmCluster"
	b.hold(scenario, "API writes", after.api.since(before.api).writes(), 0)
	b.hold(scenario, "Events", after.api.since(before.api).events(), 1) // who leads now
	b.hold(scenario, "Slurm writes", after.slurm.since(before.slurm).posts(), 0)
}

// available waits until the SlurmCluster is available.
func (b *bench) available() {
	b.t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	deadline := time.Now().Add(b.longest())
	for now := range tick.C {
		cluster := &nebiusv1.SlurmCluster{}
		if err := b.user.Get(b.t.Context(), client.ObjectKey{Namespace: b.server.Namespace, Name: "demo"}, cluster); err != nil {
			b.t.Fatal(err)
		}
		ready := meta.FindStatusCondition(cluster.Status.Conditions, "Ready")
		if ready != nil && ready.Status == metav1.ConditionTrue {
			return
		}
		if now.After(deadline) {
			b.t.Fatalf("the SlurmCluster is not ready: %+v", ready)
		}
	}
}
