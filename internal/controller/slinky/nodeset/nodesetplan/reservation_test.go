// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodesetplan_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/controller/slinky/nodeset/nodesetplan"
	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/testing/manifest"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

func TestMaintenanceOf(t *testing.T) {
	parse := func(strategy string) *nodesetplan.Maintenance {
		return nodesetplan.MaintenanceOf(manifest.Parse[slinkyv1beta1.NodeSet](t, "spec: {updateStrategy: "+strategy+"}"))
	}
	if got := parse(`{type: RollingUpdate, scheduledUpdate: {startTime: "2026-11-20T12:00:00Z"}}`); got != nil {
		t.Errorf("another strategy asks for %+v", got)
	}
	want := &nodesetplan.Maintenance{Start: noon, Duration: time.Hour, Flags: []string{"IGNORE_JOBS", "MAINT", "WEEKLY"}}
	if diff := cmp.Diff(want, parse(`{type: ScheduledUpdate, scheduledUpdate: {startTime: "2026-11-20T13:00:00+01:00", duration: 1h, flags: [weekly, maint]}}`)); diff != "" {
		t.Error(diff)
	}
}

func TestBook(t *testing.T) {
	later := noon.Add(time.Hour)
	wanted := func(flags ...string) *nodesetplan.Maintenance {
		return &nodesetplan.Maintenance{Start: later, Duration: time.Hour, Flags: append([]string{"MAINT"}, flags...)}
	}
	workers := hostlist.SetOf("w-0", "w-1")
	live := func(start time.Time, nodes ...string) *nodesetplan.Reservation {
		return &nodesetplan.Reservation{Start: start, End: start.Add(time.Hour), Nodes: hostlist.SetOf(nodes...)}
	}
	const hour = "workers are replaced from 2026-11-20T13:00:00Z to 2026-11-20T14:00:00Z"
	over := func() nodesetplan.ReservationInput {
		return nodesetplan.ReservationInput{Now: later, Nodes: workers}
	}
	with := func(s nodesetplan.ReservationInput, wanted, asked *nodesetplan.Maintenance, live *nodesetplan.Reservation) nodesetplan.ReservationInput {
		s.Wanted, s.Asked, s.Live = wanted, asked, live
		return s
	}
	early := nodesetplan.ReservationInput{Now: noon, Nodes: workers}
	tests := []struct {
		name string
		in   nodesetplan.ReservationInput
		want nodesetplan.ReservationPlan
	}{
		{"nothing is done where no reservation is wanted and none is there", early, nodesetplan.ReservationPlan{Message: "no reservation is requested"}},
		{"a reservation that is not wanted any more is deleted", with(early, nil, wanted(), live(later, "w-0")), nodesetplan.ReservationPlan{Delete: true, Message: "no reservation is requested"}},
		{"a reservation is made for the workers that Slurm has", with(early, wanted(), nil, nil),
			nodesetplan.ReservationPlan{Create: true, Nodes: workers, Exists: true, Message: hour, Again: later}},
		{"a reservation is not made without workers", nodesetplan.ReservationInput{Now: noon, Wanted: wanted()}, nodesetplan.ReservationPlan{Message: "no worker has registered with Slurm yet", Again: later}},
		{"a reservation is not made when its time is over", with(over(), wanted(), wanted(), nil),
			nodesetplan.ReservationPlan{Message: "the time of the update, 2026-11-20T13:00:00Z, is over; set another scheduledUpdate.startTime"}},
		{"a reservation is made with FORCE_START when its time is over", with(over(), wanted("FORCE_START"), nil, nil),
			nodesetplan.ReservationPlan{Create: true, Nodes: workers, Exists: true, Message: hour, Again: later}},
		{"a reservation that is there as wanted stays", with(early, wanted(), wanted(), live(later, "w-0", "w-1")),
			nodesetplan.ReservationPlan{Exists: true, Nodes: workers, Message: hour, Again: later}},
		{"when a reservation has begun, its end is waited for", with(over(), wanted(), wanted(), live(later, "w-0", "w-1")),
			nodesetplan.ReservationPlan{Exists: true, Nodes: workers, Message: hour, Again: later.Add(time.Hour)}},
		{"a recurring reservation stays where Slurm has moved it", with(over(), wanted("WEEKLY"), wanted("WEEKLY"), live(later.Add(7*24*time.Hour), "w-0", "w-1")),
			nodesetplan.ReservationPlan{Exists: true, Nodes: workers, Message: "workers are replaced from 2026-11-27T13:00:00Z to 2026-11-27T14:00:00Z", Again: later.Add(7 * 24 * time.Hour)}},
		{"another start, duration or flag makes another reservation", with(early, wanted("DAILY"), wanted(), live(later, "w-0", "w-1")),
			nodesetplan.ReservationPlan{Delete: true, Message: "another one is asked for than there is"}},
		{"a reservation that nobody remembers is made anew", with(early, wanted(), nil, live(later, "w-0", "w-1")),
			nodesetplan.ReservationPlan{Delete: true, Message: "another one is asked for than there is"}},
		{"a reservation that nobody remembers stays if it looks like the one that is wanted", with(early, wanted(), nil, &nodesetplan.Reservation{Start: later, End: later.Add(time.Hour), Nodes: workers, Flags: []string{"MAINT", "SPEC_NODES"}}),
			nodesetplan.ReservationPlan{Exists: true, Nodes: workers, Message: hour, Again: later}},
		{"a reservation follows the workers", with(early, wanted(), wanted(), live(later, "w-0", "w-2")),
			nodesetplan.ReservationPlan{Exists: true, Move: true, Nodes: workers, Message: hour, Again: later}},
		{"a reservation loses no worker while they are replaced", with(over(), wanted(), wanted(), live(later, "w-0", "w-1", "w-2")),
			nodesetplan.ReservationPlan{Exists: true, Nodes: hostlist.SetOf("w-0", "w-1", "w-2"), Message: hour, Again: later.Add(time.Hour)}},
		{"a reservation loses no worker while Slurm does not say which there are", nodesetplan.ReservationInput{Now: noon, Wanted: wanted(), Asked: wanted(), Live: live(later, "w-0")},
			nodesetplan.ReservationPlan{Exists: true, Nodes: hostlist.SetOf("w-0"), Message: hour, Again: later}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, nodesetplan.PlanReservation(tt.in), cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func maintained(a node.Answer) func(*workerpod.Pod) {
	return func(p *workerpod.Pod) { p.Maintained = a }
}

func TestScheduledUpdate(t *testing.T) {
	in := nodesetplan.Input{Now: noon, Replicas: 4, Revision: "new", Scheduled: true, MaxUnavailable: 1}
	in.Pods = []workerpod.Pod{
		aPod(0, old, maintained(node.Yes), busy), aPod(1, old, maintained(node.No), unready),
		aPod(2, maintained(node.Yes)), aPod(3, old, maintained(node.Unknown), updating),
	}
	check(t, in, nodesetplan.Plan{Retire: retire(workerpod.Update, "w-0")})
	// When it is over, those that still have jobs stay as they are.
	in.Pods = []workerpod.Pod{aPod(0, old, updating, busy, maintained(node.No)), aPod(1, old), aPod(2), aPod(3, old, maintained(node.Unknown))}
	check(t, in, nodesetplan.Plan{Unretire: []string{"w-0"}})
}

func TestNodesLeaveAMaintenance(t *testing.T) {
	for _, tt := range []struct {
		name, flag, leaving, want string
		end                       bool
	}{
		{"one of two nodes leaves", "MAINT", "w-0", "w-1", false},
		{"both nodes leave", "MAINT", "w-[0-1]", "", true},
		{"one of two nodes leaves a maintenance that recurs", "DAILY", "w-1", "w-0", false},
		{"both nodes leave a maintenance that recurs, and one is left", "WEEKEND", "w-[0-1]", "w-0", false},
		{"a node of somebody else leaves", "MAINT", "v-0", "w-[0-1]", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			leaving, err := hostlist.ParseSet(tt.leaving, 10)
			if err != nil {
				t.Fatal(err)
			}
			w := &nodesetplan.Reservation{Nodes: hostlist.SetOf("w-0", "w-1"), Flags: []string{tt.flag}}
			if rest, end := w.Leave(leaving); rest.String() != tt.want || end != tt.end {
				t.Errorf("%s stay, and it ends: %t", rest, end)
			}
		})
	}
}
