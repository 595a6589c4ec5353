// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	leafLabel  = "topology.nebius.com/tier-1"
	spineLabel = "topology.nebius.com/tier-2"
)

// followsNetwork labels the Kubernetes nodes of the workers with their switches, and moves one of them.
func followsNetwork(t *testing.T, c *slurmCluster, alice *user) {
	nodes := []string{c.pod(t, c.workerPod(0)).Spec.NodeName, c.pod(t, c.workerPod(1)).Spec.NodeName}
	if nodes[0] == nodes[1] {
		t.Fatalf("both workers are on %s", nodes[0])
	}
	t.Cleanup(func() {
		for _, node := range nodes {
			c.labelNode(t, node, "", "")
		}
	})
	alice.awaitsSwitches(t, "", "")
	for i, node := range nodes {
		c.labelNode(t, node, fmt.Sprintf("leaf%d", i), "spine")
	}
	alice.awaitsSwitches(t, "root.spine.leaf0.worker-0", "root.spine.leaf1.worker-1")
	running, release := alice.submitsBlocked(t, "--nodelist=worker-0")
	moved := time.Now()
	c.labelNode(t, nodes[1], "leaf2", "spine")
	eventually(t, soon, "scontrol to show worker-1 at leaf2", func(ctx context.Context) error {
		out, err := alice.Run(ctx, "scontrol show topology")
		if err == nil && !strings.Contains(out, "SwitchName=leaf2 Level=0 LinkSpeed=1 Nodes=worker-1") {
			err = fmt.Errorf("it shows %s", out)
		}
		return err
	})
	t.Logf("scontrol shows worker-1 at its new switch %.1f s after the label", time.Since(moved).Seconds())
	alice.awaitsSwitches(t, "root.spine.leaf0.worker-0", "root.spine.leaf2.worker-1")
	alice.awaits(t, running, "RUNNING")
	release(t)
	alice.awaits(t, running, "COMPLETED")
}

// awaitsSwitches waits until jobs on worker-0 and worker-1 have these places. slurmd sets them, by its own copy of the file.
func (u *user) awaitsSwitches(t *testing.T, places ...string) {
	t.Helper()
	for i, want := range places {
		eventually(t, soon, fmt.Sprintf("jobs on worker-%d to be told %q", i, want), func(ctx context.Context) error {
			out, err := u.Run(ctx, fmt.Sprintf(`srun --nodelist=worker-%d sh -c 'echo "[$SLURM_TOPOLOGY_ADDR]"'`, i))
			got := strings.Trim(strings.TrimSpace(out), "[]")
			if flat := want == "" && got == fmt.Sprintf("worker-%d", i); err == nil && got != want && !flat {
				err = fmt.Errorf("they are told %q", got)
			}
			return err
		})
	}
}

// labelNode sets where a Kubernetes node is in the network; nowhere without a leaf.
func (s *scene) labelNode(t *testing.T, name, leaf, spine string) {
	t.Helper()
	value := func(name string) string {
		if name == "" {
			return "null"
		}
		return `"` + name + `"`
	}
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%s,%q:%s}}}`, leafLabel, value(leaf), spineLabel, value(spine))
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := s.Patch(context.WithoutCancel(t.Context()), node, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		t.Errorf("labelling Kubernetes node %s: %v", name, err)
	}
}
