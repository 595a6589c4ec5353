// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

// nextSecond waits until it is a later second than the one in which the workers were made: Slurm and Kubernetes give whole ones.
func nextSecond(t *testing.T, o *operator.Operator) {
	t.Helper()
	apiserver.Eventually(t, func() error {
		for _, p := range o.Workers() {
			if !time.Now().Truncate(time.Second).After(p.CreationTimestamp.Time) {
				return fmt.Errorf("%s was made in this second", p.Name)
			}
		}
		return nil
	})
}

// expectNoted waits until the comment of a Slurm node has its drain.
func expectNoted(t *testing.T, o *operator.Operator, name string) {
	t.Helper()
	apiserver.Eventually(t, func() error {
		n, _ := o.Slurm.Node(name)
		if c, _ := node.ParseComment(n.Comment); c.DrainedFor == "" {
			return fmt.Errorf("the comment does not note the drain: %s", n.Comment)
		}
		return nil
	})
}

func TestADrainForARegistrationThatNoLongerHoldsEnds(t *testing.T) {
	t.Parallel()
	o, _ := operator.StartWorkersOn(t, 2, `partition: {enabled: true}`)
	expectComment(t, o)
	if err := o.Slurm.Update("root", "w-1", "DRAIN", "bad disk"); err != nil {
		t.Fatal(err)
	}
	o.Settle()
	const low = "Low RealMemory (reported:500 < 100.00% of configured:24000)"
	for _, name := range []string{"w-0", "w-1"} {
		o.Slurm.Register(fake.Node{Name: name, CPUs: 4, RealMemory: 500})
		o.ExpectNode(name, "IDLE+DRAIN+INVALID_REG+DYNAMIC_NORM "+low)
	}
	expectNoted(t, o, "w-0")
	o.Settle()
	// Slurm gives whole seconds: a slurmd of the same second may be the one before.
	apiserver.Eventually(t, func() error {
		for _, name := range []string{"w-0", "w-1"} {
			o.Slurm.Register(fake.Node{Name: name, CPUs: 4, RealMemory: 24000})
		}
		if got := o.NodeState("w-0"); got != "IDLE+DYNAMIC_NORM " {
			return fmt.Errorf("w-0 is %s", got)
		}
		return nil
	})
	o.Settle()
	if got := o.NodeState("w-1"); got != "IDLE+DRAIN+DYNAMIC_NORM "+low {
		t.Errorf("w-1, which a person had drained before, is %s", got)
	}
	o.ExpectNothingWritten(o.Restart)
}

func TestADrainOfACheckEndsOnAnotherMachine(t *testing.T) {
	t.Parallel()
	o, nodes := operator.StartWorkersOn(t, 3, `partition: {enabled: true}`)
	nextSecond(t, o)
	const check = "[node_problem] gpu_health_check: XID 79"
	for name, reason := range map[string]string{"w-0": check, "w-1": check, "w-2": "bad disk"} {
		if err := o.Slurm.Update("root", name, "DRAIN", reason); err != nil {
			t.Fatal(err)
		}
	}
	expectNoted(t, o, "w-0")
	expectNoted(t, o, "w-1")
	o.Settle() // the operator has seen that it is noted
	for i, name := range operator.WorkerNames(3) {
		to := nodes[i]
		if i != 1 {
			to = o.KubeNode(fmt.Sprintf("spare-%d", i))
		}
		before := operator.Get[corev1.Pod](o, name).UID
		o.Kill(name)
		o.ExpectReplaced(name, before)
		o.Bind(name, to)
	}
	o.RunWorkers()
	o.ExpectNode("w-0", "IDLE+DYNAMIC_NORM ")
	o.Settle()
	for name, want := range map[string]string{"w-1": check, "w-2": "bad disk"} {
		if got := o.NodeState(name); got != "IDLE+DRAIN+DYNAMIC_NORM "+want {
			t.Errorf("%s is %s", name, got)
		}
	}
	n, _ := o.Slurm.Node("w-0")
	if c, _ := node.ParseComment(n.Comment); c.DrainedFor != "" {
		t.Errorf("the comment notes a drain that is over: %s", n.Comment)
	}
	o.ExpectNoErrors()
}
