// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
)

// Slurm powers down workers that are idle, and up those that a job is given, and the operator follows.
func TestPowerSaving(t *testing.T) {
	needsTime(t)
	t.Parallel()
	s := newScene(t)
	m := s.manifest(t, "power.yaml")
	cluster, err := m.Only("SlurmCluster")
	if err != nil {
		t.Fatal(err)
	}
	s.apply(t, m)
	s.awaitCondition(t, patient, cluster, "Ready", metav1.ConditionTrue)
	all := []string{"burst-0", "burst-1", "burst-2", "burst-3"}
	s.awaitPoweredDown(t, all...)

	// One job needs all of them, three of which have never run, and its step runs on each (decision 026).
	asked := time.Now()
	s.inSlurm(t, "sbatch", "--wait", "--nodes=4", "--chdir=/tmp", "--output=/dev/null", "--wrap=srun --nodes=4 hostname")
	t.Logf("a job on four nodes that were powered down has ended after %.0f s", time.Since(asked).Seconds())
	s.awaitPoweredDown(t, all...)

	// Now all have run once, and they come at other addresses. The drain of a worker that is powered down is not left behind.
	if out := s.inSlurm(t, "srun", "--chdir=/tmp", "--nodelist=burst-2,burst-3", "--label", "hostname"); !strings.Contains(out, ": burst-2") || !strings.Contains(out, ": burst-3") {
		t.Errorf("srun on two nodes prints %q", out)
	}
	if state := s.inSlurm(t, "sinfo", "--noheader", "--partition=main", "--states=powered_down", "--format=%D"); state != "2" {
		t.Errorf("%q nodes are powered down while two are not", state)
	}
	s.awaitPoweredDown(t, all...)

	// A user asks for a node without a job. Slurm powers it down again when it was idle for long enough.
	power := &nebiusv1alpha1.NodeSetPowerState{}
	power.Namespace, power.Name = s.namespace, "burst"
	if err := s.Patch(t.Context(), power, client.RawPatch(types.MergePatchType, []byte(`{"spec": {"activeNodes": [3]}}`))); err != nil {
		t.Fatalf("adding node 3 to spec.activeNodes: %v", err)
	}
	eventually(t, patient, "node 3 to run", func(ctx context.Context) error {
		if err := s.Get(ctx, s.name("burst"), power); err != nil {
			return err
		}
		if got := power.Status.NodeStates["3"]; got.Phase != "Running" || got.PodName != "demo-burst-3" || got.Message != "" {
			return fmt.Errorf("spec.activeNodes is %v, and status.nodeStates of 3 %+v", power.Spec.ActiveNodes, got)
		}
		return nil
	})
	s.awaitPoweredDown(t, all...)
	eventually(t, patient, "spec.activeNodes to be empty", func(ctx context.Context) error {
		if err := s.Get(ctx, s.name("burst"), power); err != nil {
			return err
		}
		if len(power.Spec.ActiveNodes)+len(power.Status.NodeStates) > 0 {
			return fmt.Errorf("it is %v, and the status %+v", power.Spec.ActiveNodes, power.Status)
		}
		return nil
	})
	s.sound(t)
}

// inSlurm runs a command beside slurmctld, and returns what it prints.
func (s *scene) inSlurm(t *testing.T, command ...string) string {
	t.Helper()
	out, err := s.Exec(t.Context(), s.name("demo-controller-0"), "slurmctld", command...)
	if err != nil {
		t.Fatalf("%s: %v: %s", strings.Join(command, " "), err, out)
	}
	return strings.TrimSpace(out)
}

// awaitPoweredDown waits until Slurm has powered down these nodes, which are all nodes, and they have no pods.
func (s *scene) awaitPoweredDown(t *testing.T, names ...string) {
	t.Helper()
	eventually(t, patient, "the nodes to be powered down", func(ctx context.Context) error {
		out, err := s.Exec(ctx, s.name("demo-controller-0"), "slurmctld", "sinfo", "--noheader", "--partition=main", "--Node", "--format=%N %T")
		if err != nil {
			return err
		}
		if got, want := strings.Fields(out), 2*len(names); len(got) != want || strings.Count(out, "idle~") != len(names) {
			return fmt.Errorf("they are %s", out)
		}
		return nil
	})
	for _, name := range names {
		s.awaitNoPod(t, "demo-"+name)
	}
}
