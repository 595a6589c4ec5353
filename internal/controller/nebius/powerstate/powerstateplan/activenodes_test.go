// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package powerstateplan_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coxswain-hpc/coxswain/internal/controller/nebius/powerstate/powerstateplan"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

const (
	off       = "IDLE+POWERED_DOWN+DYNAMIC_NORM"
	goingOff  = "IDLE+POWERING_DOWN+DYNAMIC_NORM"
	comes     = "ALLOCATED+NOT_RESPONDING+POWERING_UP+DYNAMIC_NORM"
	inService = "IDLE+DYNAMIC_NORM"
)

func TestDecideActiveNodes(t *testing.T) {
	is := func(state string) powerstateplan.OrdinalPower {
		return powerstateplan.OrdinalPower{Known: true, State: node.Parse(strings.Split(state, "+"))}
	}
	added := func(o powerstateplan.OrdinalPower) powerstateplan.OrdinalPower {
		o.Active, o.Shown = true, false
		return o
	}
	removed := func(o powerstateplan.OrdinalPower) powerstateplan.OrdinalPower {
		o.Active, o.Shown = false, true
		return o
	}
	shown := func(o powerstateplan.OrdinalPower) powerstateplan.OrdinalPower {
		o.Active, o.Shown = true, true
		return o
	}
	with := func(o powerstateplan.OrdinalPower, change func(*powerstateplan.OrdinalPower)) powerstateplan.OrdinalPower {
		change(&o)
		return o
	}
	held := func(o *powerstateplan.OrdinalPower) { o.Held = true }
	beyond := func(o *powerstateplan.OrdinalPower) { o.Beyond = true }
	one := []int32{3}
	for name, c := range map[string]struct {
		ordinal powerstateplan.OrdinalPower
		want    powerstateplan.ActiveNodes
	}{
		"what Slurm wants is shown":                                              {is(inService), powerstateplan.ActiveNodes{Active: one, Shown: one}},
		"what Slurm has powered down is shown no more":                           {shown(is(off)), powerstateplan.ActiveNodes{}},
		"what Slurm powers up for a job is shown":                                {is(comes), powerstateplan.ActiveNodes{Active: one, Shown: one}},
		"a worker that is about to register is shown":                            {powerstateplan.OrdinalPower{Pod: true}, powerstateplan.ActiveNodes{Active: one, Shown: one}},
		"an ordinal that is not there and that Slurm does not have is not shown": {shown(powerstateplan.OrdinalPower{}), powerstateplan.ActiveNodes{}},
		"an ordinal that is added is asked for, and stays":                       {added(is(off)), powerstateplan.ActiveNodes{Active: one, Up: one}},
		"an ordinal that is added is shown when Slurm has heard of it":           {added(is("IDLE+POWERED_DOWN+POWER_UP")), powerstateplan.ActiveNodes{Active: one, Shown: one}},
		"an ordinal that Slurm does not have cannot be asked for":                {added(powerstateplan.OrdinalPower{}), powerstateplan.ActiveNodes{Active: one, Absent: one}},
		"an ordinal that is taken away is asked for, and stays away":             {removed(is(inService)), powerstateplan.ActiveNodes{Shown: one, Down: one}},
		"the jobs of an ordinal that is taken away end before it goes":           {removed(is("MIXED+POWER_DOWN")), powerstateplan.ActiveNodes{}},
		"a drain of somebody else is not ended when an ordinal is taken away":    {with(removed(is("IDLE+DRAIN")), held), powerstateplan.ActiveNodes{Shown: one, Held: one}},
		"an ordinal that somebody has drained can be powered up":                 {with(added(is("IDLE+DRAIN+POWERED_DOWN")), held), powerstateplan.ActiveNodes{Active: one, Up: one}},
		"an ordinal that the NodeSet has not is told":                            {with(added(is(off)), beyond), powerstateplan.ActiveNodes{Active: one, Beyond: one}},
		"an ordinal that the NodeSet has no more is shown no more":               {with(shown(is(inService)), beyond), powerstateplan.ActiveNodes{}},
		"what is not certain stays as it is":                                     {shown(is("IDLE+INVALID+POWERED_DOWN")), powerstateplan.ActiveNodes{Active: one, Shown: one}},
		"what is not certain is not asked for":                                   {added(is("IDLE+INVALID+POWERED_DOWN")), powerstateplan.ActiveNodes{Active: one}},
		"a flag that is not known keeps nobody":                                  {added(is("IDLE+NEWS+POWERED_DOWN")), powerstateplan.ActiveNodes{Active: one, Up: one}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, powerstateplan.DecideActiveNodes(map[int32]powerstateplan.OrdinalPower{3: c.ordinal})); diff != "" {
				t.Errorf("(-want, +got):\n%s", diff)
			}
		})
	}
}

// TestRequestsForPowerEnd changes spec.activeNodes at random while Slurm and the operator go on. When the changes end, Slurm is asked for
// nothing after a while, and spec.activeNodes shows Slurm's record.
func TestRequestsForPowerEnd(t *testing.T) {
	states := []string{inService, off, goingOff, comes, "MIXED+POWER_DOWN", "IDLE+POWERED_DOWN+POWER_UP"}
	rapid.Check(t, func(t *rapid.T) {
		const nodes = 4
		active, shown := map[int32]bool{}, map[int32]bool{}
		slurm := map[int32]string{}
		pass := func() (asked int) {
			in := map[int32]powerstateplan.OrdinalPower{}
			for o := range int32(nodes) {
				in[o] = powerstateplan.OrdinalPower{Active: active[o], Shown: shown[o], Known: true, State: node.Parse(strings.Split(slurm[o], "+"))}
			}
			out := powerstateplan.DecideActiveNodes(in)
			for o := range int32(nodes) {
				if before := active[o]; before != shown[o] && slices.Contains(out.Active, o) != before {
					t.Fatalf("a request for node %d is forgotten", o)
				}
				active[o], shown[o] = slices.Contains(out.Active, o), slices.Contains(out.Shown, o)
			}
			for _, o := range out.Up {
				slurm[o] = "IDLE+POWERED_DOWN+POWER_UP"
			}
			for _, o := range out.Down {
				slurm[o] = "MIXED+POWER_DOWN"
			}
			return len(out.Up) + len(out.Down)
		}
		for o := range int32(nodes) {
			slurm[o] = rapid.SampledFrom(states).Draw(t, "state")
		}
		for range rapid.IntRange(1, 10).Draw(t, "steps") {
			o := rapid.Int32Range(0, nodes-1).Draw(t, "node")
			if rapid.Bool().Draw(t, "by Slurm") {
				slurm[o] = rapid.SampledFrom(states).Draw(t, "state")
			} else {
				active[o] = !active[o]
			}
			if rapid.Bool().Draw(t, "the operator looks") {
				pass()
			}
		}
		pass()
		pass()
		if asked := pass(); asked > 0 {
			t.Fatalf("Slurm is asked for %d nodes again and again", asked)
		}
		for o := range int32(nodes) {
			if wanted := node.Parse(strings.Split(slurm[o], "+")).Wanted(); active[o] != wanted || shown[o] != wanted {
				t.Fatalf("node %d is %s, and shown as %t", o, slurm[o], active[o])
			}
		}
	})
}
