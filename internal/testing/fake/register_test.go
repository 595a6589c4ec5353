// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package fake_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

// registration is how a node registers a second time, and the result, as seen on a real slurmctld.
type registration struct {
	first, second fake.Node
	// between happens between the two.
	between func(cluster)
	want    string
	// old is what 24.11 does, when it differs.
	old string
}

func registrations() map[string]registration {
	four := fake.Node{CPUs: 4, RealMemory: 600, Weight: 5, Features: []string{"f"}, CoreSpecCount: 1}
	fewer := fake.Node{CPUs: 2}
	const low = "Low socket*core*thread count, Low CPUs"
	disk := func(c cluster) { _ = c.Update("root", "a", "DRAIN", "disk") }
	return map[string]registration{
		"the second registration is the same": {first: four, second: four, want: "a=IDLE"},
		"what slurmd is told to be is only for the first time": {
			first: four, second: fake.Node{CPUs: 4, RealMemory: 400, Weight: 9, Features: []string{"g"}, Machine: fake.Machine{RealMemory: 24105}}, want: "a=IDLE",
		},
		"the second registration offers more":        {first: four, second: fake.Node{CPUs: 8}, want: "a=IDLE"},
		"the second registration offers fewer CPUs":  {first: four, second: fewer, want: "a=IDLE+DRAIN+INVALID_REG(" + low + " by slurm)"},
		"the second registration offers other cores": {first: four, second: fake.Node{CPUs: 4, CoreSpecCount: 2}, want: "a=IDLE+DRAIN+INVALID_REG(CoreSpec differ by slurm)"},
		"the second registration offers less memory": {first: four, second: fake.Node{CPUs: 4, RealMemory: 500}, want: "a=IDLE+DRAIN+INVALID_REG(Low RealMemory (reported:500 < 100.00% of configured:600) by slurm)"},
		"the second registration offers less of all": {first: fake.Node{CPUs: 4, Gres: "gpu:2", RealMemory: 99}, second: fake.Node{CPUs: 1, RealMemory: 98}, want: "a=IDLE+DRAIN+INVALID_REG(gres/gpu count reported lower than configured (0 < 2), " + low + ", Low RealMemory (reported:98 < 100.00% of configured:99) by slurm)"},
		"the first registration offers less":         {second: fake.Node{RealMemory: 99, Machine: fake.Machine{RealMemory: 98}}, want: "a=IDLE+DRAIN+INVALID_REG(Low RealMemory (reported:98 < 100.00% of configured:99) by slurm)"},
		"a drain of somebody else loses its reason": {
			first: four, between: disk, second: fewer, want: "a=IDLE+DRAIN+INVALID_REG(" + low + " by slurm)",
		},
		"a node that is down stays so": {
			first: four, between: func(c cluster) { _ = c.Update("root", "a", "DOWN", "disk") }, second: fewer, want: "a=DOWN+INVALID_REG(" + low + " by slurm)",
		},
		"enough again does not end the drain": {
			first: four, between: func(c cluster) { c.Register(named(fewer)) }, second: four, want: "a=IDLE+DRAIN(" + low + " by slurm)",
		},
		"nobody undrains an invalid node": {
			first: four, between: func(c cluster) { c.Register(named(fewer)); _ = c.Update("root", "a", "RESUME", "") }, second: fewer,
			want: "a=IDLE+DRAIN+INVALID_REG(" + low + " by slurm)",
		},
		"a deleted record is made anew": {
			first: four, between: func(c cluster) { _ = c.Delete("a") }, second: fewer, want: "a=IDLE",
		},
		"a job goes on": {
			first: four, between: func(c cluster) { c.Submit(fake.Job{Nodes: 1}) }, second: fewer, want: "a=ALLOCATED+DRAIN+INVALID_REG(" + low + " by slurm)",
		},
	}
}

// named is a node with the name a.
func named(n fake.Node) fake.Node {
	n.Name = "a"
	return n
}

func TestNodesRegisterAgain(t *testing.T) {
	for _, release := range []string{fake.Slurm2411, fake.Slurm2605} {
		for name, test := range registrations() {
			t.Run(release+" "+name, func(t *testing.T) {
				c := start(t, release)
				if test.first.CPUs > 0 {
					c.Register(named(test.first))
				}
				if test.between != nil {
					test.between(c)
				}
				c.clock.Step(time.Minute)
				c.Register(named(test.second))
				want := test.want
				if release == fake.Slurm2411 && test.old != "" {
					want = test.old
				}
				if got := c.states(t); got != want {
					t.Errorf("nodes are %s, want %s", got, want)
				}
			})
		}
	}
}

func TestTheRecordIsThatOfTheFirstRegistration(t *testing.T) {
	first := fake.Node{
		Name: "a", CPUs: 4, RealMemory: 600, Weight: 5, Features: []string{"f"}, Gres: "gpu:1", MemSpecLimit: 100, Address: "10.0.0.1",
		InstanceID: "i1", InstanceType: "t1", Extra: "e1",
	}
	second := fake.Node{
		Name: "a", CPUs: 8, RealMemory: 700, Weight: 9, Features: []string{"g"}, Gres: "gpu:2", MemSpecLimit: 200, Address: "10.0.0.2",
		InstanceID: "i2", InstanceType: "t2", Extra: "e2",
	}
	for release, about := range map[string]string{fake.Slurm2411: "i2 t2 e2", fake.Slurm2605: "i1 t1 e1"} {
		c := start(t, release)
		c.Register(first)
		c.Register(second)
		status, _ := c.Node("a")
		r := status.Record
		got := fmt.Sprintln(r.CPUs, r.RealMemory, r.Weight, r.Features, r.Gres, r.MemSpecLimit, r.Address, r.InstanceID, r.InstanceType, r.Extra)
		if want := "4 600 5 [f] gpu:1 100 10.0.0.2 " + about + "\n"; got != want {
			t.Errorf("%s: the record is %s, want %s", release, got, want)
		}
	}
}

// TestANodeThatIsDownReturnsToServiceWhenItsSlurmdAnswers is what test/compare sees of a real slurmctld.
func TestANodeThatIsDownReturnsToServiceWhenItsSlurmdAnswers(t *testing.T) {
	answers := func(c cluster) { c.Answer("a") }
	undrain := func(c cluster) { _ = c.Update("root", "a", "UNDRAIN", "") }
	for name, test := range map[string]struct {
		do   []func(cluster)
		want string
	}{
		"the slurmd answers":                             {[]func(cluster){answers}, "a=IDLE"},
		"the slurmd is asked after an undrain":           {[]func(cluster){undrain}, "a=IDLE"},
		"the node's drain stays":                         {[]func(cluster){func(c cluster) { _ = c.Update("root", "a", "DRAIN", "disk") }, answers}, "a=IDLE+DRAIN(disk by root)"},
		"the slurmd has ended":                           {[]func(cluster){func(c cluster) { c.Leave("a") }, answers, undrain}, "a=DOWN(psu by root)"},
		"slurmctld has given the node up":                {[]func(cluster){func(c cluster) { c.Lose("a") }, undrain}, "a=DOWN+NOT_RESPONDING(psu by root)"},
		"the slurmd offers too little":                   {[]func(cluster){func(c cluster) { c.Register(fake.Node{Name: "a", CPUs: 2}) }, answers}, "a=DOWN+INVALID_REG(Low socket*core*thread count, Low CPUs by slurm)"},
		"another slurmd answers, and the first does not": {[]func(cluster){func(c cluster) { c.Answer("b") }}, "a=DOWN(psu by root)"},
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t, fake.Slurm2605)
			c.Register(fake.Node{Name: "a", CPUs: 4})
			if err := c.Update("root", "a", "DOWN", "psu"); err != nil {
				t.Fatal(err)
			}
			for _, do := range test.do {
				do(c)
			}
			if got := c.states(t); got != test.want {
				t.Errorf("nodes are %s, want %s", got, test.want)
			}
		})
	}
}

// TestNobodyOpensANodeThatOffersTooLittle pins the number of the error, by which clients recognise it.
func TestNobodyOpensANodeThatOffersTooLittle(t *testing.T) {
	for release, code := range map[string]int{fake.Slurm2411: 2028, fake.Slurm2605: 2180} {
		for _, state := range []string{"UNDRAIN", "RESUME", "IDLE"} {
			c := start(t, release)
			c.Register(fake.Node{Name: "a", CPUs: 4, Machine: fake.Machine{CPUs: 2}})
			err := c.client.UpdateNodes(t.Context(), "a", rest.NodeUpdate{State: state})
			refusal, ok := errors.AsType[*rest.Error](err)
			if !ok || refusal.Kind != rest.Refused || refusal.Code != code {
				t.Errorf("%s: %s is answered with %v, want a refusal with %d", release, state, err, code)
			}
		}
	}
}
