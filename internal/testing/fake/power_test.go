// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package fake_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

// TestPowerSaving goes through what test/compare has seen of real ones.
func TestPowerSaving(t *testing.T) {
	c := start(t, fake.Slurm2605)
	node := fake.Node{Name: "a", CPUs: 4, RealMemory: 600}
	booted := node
	booted.Boot = true
	var id int64
	power := func(state string) func() { return func() { _ = c.Update("root", "a", state, "") } }
	for _, step := range []struct {
		name string
		do   func()
		want string
	}{
		{"a node registers", func() { c.Register(node) }, "IDLE+DYNAMIC_NORM"},
		{"the node powers down", power("POWER_DOWN"), "IDLE+POWERED_DOWN+DYNAMIC_NORM"},
		{"a job asks for the node", func() { id = c.Submit(fake.Job{Nodes: 1}) }, "ALLOCATED+NOT_RESPONDING+POWERING_UP+DYNAMIC_NORM RUNNING+CONFIGURING+POWER_UP_NODE"},
		{"a slurmd registers that has started before", func() { c.Register(node) }, "ALLOCATED+NOT_RESPONDING+POWERING_UP+DYNAMIC_NORM RUNNING+CONFIGURING+POWER_UP_NODE"},
		{"a slurmd registers that has started since", func() { c.Register(booted) }, "ALLOCATED+DYNAMIC_NORM RUNNING"},
		{"a busy node does not power down yet", power("POWER_DOWN"), "ALLOCATED+POWER_DOWN+DYNAMIC_NORM RUNNING"},
		{"the job is cancelled", func() { c.Cancel(id); c.clock.Step(time.Minute) }, "IDLE+POWERED_DOWN+DYNAMIC_NORM CANCELLED"},
		{"another job asks for the node", func() { id = c.Submit(fake.Job{Nodes: 1}) }, "ALLOCATED+NOT_RESPONDING+POWERING_UP+DYNAMIC_NORM RUNNING+CONFIGURING+POWER_UP_NODE"},
		{"the node does not come", func() { c.Late("a") }, "DOWN+POWERED_DOWN+DYNAMIC_NORM(ResumeTimeout reached) PENDING"},
		{"the node comes too late", func() { c.Register(node) }, "ALLOCATED+DYNAMIC_NORM RUNNING"},
	} {
		step.do()
		n, _ := c.Node("a")
		got := strings.Join(n.State, "+")
		if n.Reason != "" {
			got += "(" + n.Reason + ")"
		}
		if j, ok := c.Job(id); ok {
			got += " " + strings.Join(j.State, "+")
		}
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("%s (-want, +got):\n%s", step.name, diff)
		}
	}
}

func TestANodeIsMadePoweredDown(t *testing.T) {
	c := start(t, fake.Slurm2605)
	if err := c.client.CreateNode(t.Context(), "NodeName=c CPUs=4 RealMemory=600 State=CLOUD"); err != nil {
		t.Fatal(err)
	}
	n, _ := c.Node("c")
	if got, want := strings.Join(n.State, "+"), "IDLE+CLOUD+POWERED_DOWN+DYNAMIC_NORM"; got != want {
		t.Errorf("it is %s, want %s", got, want)
	}
}
