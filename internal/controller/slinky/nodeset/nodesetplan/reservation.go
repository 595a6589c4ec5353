// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodesetplan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/problem/rule"
	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
)

// ReservationName returns the name of the maintenance reservation of a NodeSet.
func ReservationName(nodeSet string) string { return "SlurmOperatorMaint-" + nodeSet }

// Maintenance is what is asked for in a maintenance reservation.
type Maintenance struct {
	Start    time.Time
	Duration time.Duration
	// Flags are sorted, in upper case, MAINT and IGNORE_JOBS among them.
	Flags []string
}

// MaintenanceOf returns what the spec asks for, or nil when its strategy is another one.
func MaintenanceOf(n *slinkyv1beta1.NodeSet) *Maintenance {
	u := n.Spec.UpdateStrategy.ScheduledUpdate
	if n.UpdateType() != slinkyv1beta1.UpdateScheduled || u == nil || u.StartTime == nil {
		return nil
	}
	m := &Maintenance{Start: u.StartTime.UTC(), Duration: 30 * time.Minute, Flags: []string{"MAINT", "IGNORE_JOBS"}}
	if u.Duration != nil && u.Duration.Duration > 0 {
		m.Duration = u.Duration.Duration
	}
	for _, flag := range u.Flags {
		m.Flags = append(m.Flags, strings.ToUpper(flag))
	}
	slices.Sort(m.Flags)
	m.Flags = slices.Compact(m.Flags)
	return m
}

func (m *Maintenance) equal(o *Maintenance) bool {
	return o != nil && m.Start.Equal(o.Start) && m.Duration == o.Duration && slices.Equal(m.Flags, o.Flags)
}

// Reservation is a reservation as Slurm has it.
type Reservation struct {
	Start, End time.Time
	Nodes      hostlist.Set
	Flags      []string
}

// madeFor reports whether the reservation looks as it does when it has just been made. That counts when nothing is remembered: the operator
// may have died between making it and noting it.
func (w *Reservation) madeFor(m *Maintenance) bool {
	missing := slices.ContainsFunc(m.Flags, func(f string) bool { return !slices.Contains(w.Flags, f) })
	return w.Start.Equal(m.Start) && w.End.Sub(w.Start) == m.Duration && !missing
}

// Leave returns what becomes of the reservation when these nodes leave it: it keeps the rest, or ends, since Slurm has none without nodes.
// One that recurs does not end: it keeps a node until others have come back.
func (w *Reservation) Leave(nodes hostlist.Set) (rest hostlist.Set, end bool) {
	rest = w.Nodes.Difference(nodes)
	if rest.Len() > 0 {
		return rest, false
	}
	for _, often := range []string{"HOURLY", "DAILY", "WEEKLY", "WEEKDAY", "WEEKEND"} {
		if slices.Contains(w.Flags, often) {
			return hostlist.SetOf(w.Nodes.Sorted()[0]), false
		}
	}
	return rest, true
}

// ReservationInput is what decides about the reservation of a NodeSet.
type ReservationInput struct {
	Now time.Time
	// Wanted is what the spec asks for; nil for no reservation.
	Wanted *Maintenance
	// Asked is what the existing reservation was made for, as far as is remembered.
	Asked *Maintenance
	// Nodes are the Slurm nodes of the workers that Slurm has.
	Nodes hostlist.Set
	// Live is the reservation in Slurm; nil when Slurm, asked just now, has none.
	Live *Reservation
}

// ReservationPlan is what to do about the reservation of a NodeSet.
type ReservationPlan struct {
	// Delete reports whether the reservation is to be deleted.
	Delete bool
	// Create reports whether it is to be made as wanted, Move whether it is to get other nodes. Both are for Nodes.
	Create, Move bool
	Nodes        hostlist.Set
	// Exists reports whether there is one now, or will be. Message is why there is none, or when it is.
	Exists  bool
	Message string
	// Again is when the decision may change by time alone; zero when it does not.
	Again time.Time
}

//nolint:gochecknoglobals // a constant list
var reservationPlans = rule.List[*ReservationInput, ReservationPlan]{
	Question: "What becomes of the maintenance reservation of a NodeSet?",
	Rules: []rule.Rule[*ReservationInput, ReservationPlan]{
		{
			Name: "none is asked for", Does: "delete the one that there is", Why: "the NodeSet has another strategy, or no workers",
			When: func(s *ReservationInput) bool { return s.Wanted == nil },
			Then: func(s *ReservationInput) ReservationPlan {
				return ReservationPlan{Delete: s.Live != nil, Message: "no reservation is requested"}
			},
		},
		{
			Name: "there is one that was made for something else", Does: "delete it, and make another", Why: "Slurm does not change the time of one that has begun",
			When: func(s *ReservationInput) bool {
				return s.Live != nil && !s.Wanted.equal(s.Asked) && (s.Asked != nil || !s.Live.madeFor(s.Wanted))
			},
			Then: rule.Is[*ReservationInput](ReservationPlan{Delete: true, Message: "another one is asked for than there is"}),
		},
		{
			Name: "there is one", Does: "put the nodes of the workers into it", Why: "a recurring one is left where Slurm has moved it",
			When: func(s *ReservationInput) bool { return s.Live != nil }, Then: (*ReservationInput).standing,
		},
		{
			Name: "its time is over", Does: "nothing", Why: "it is not made again until the spec has another time",
			When: func(s *ReservationInput) bool {
				return !s.Wanted.Start.After(s.Now) && !slices.Contains(s.Wanted.Flags, "FORCE_START")
			},
			Then: func(s *ReservationInput) ReservationPlan {
				return ReservationPlan{Message: fmt.Sprintf("the time of the update, %s, is over; set another scheduledUpdate.startTime", s.Wanted.Start.Format(time.RFC3339))}
			},
		},
		{
			Name: "no worker has registered", Does: "wait", Why: "Slurm has no reservation without nodes",
			When: func(s *ReservationInput) bool { return s.Nodes.Len() == 0 },
			Then: func(s *ReservationInput) ReservationPlan {
				return ReservationPlan{Message: "no worker has registered with Slurm yet", Again: s.Wanted.Start}
			},
		},
		{
			Name: "otherwise", Does: "make it", Why: "the spec asks for it",
			Then: func(s *ReservationInput) ReservationPlan {
				return ReservationPlan{Create: true, Nodes: s.Nodes, Exists: true, Message: window(s.Wanted.Start, s.Wanted.Start.Add(s.Wanted.Duration)), Again: s.Wanted.Start}
			},
		},
	},
}

// PlanReservation decides about the reservation of a NodeSet.
func PlanReservation(s ReservationInput) ReservationPlan { return reservationPlans.Decide(&s) }

// standing decides about an existing reservation that is as wanted.
func (s *ReservationInput) standing() ReservationPlan {
	b := ReservationPlan{Exists: true, Message: window(s.Live.Start, s.Live.End), Nodes: s.Live.Nodes}
	if s.Nodes.Len() > 0 && (s.Nodes.Difference(s.Live.Nodes).Len() > 0 || s.Live.Nodes.Difference(s.Nodes).Len() > 0 && !s.open()) {
		// During the maintenance a worker that is being replaced is missing for a moment; its place stays reserved.
		b.Move, b.Nodes = true, s.Nodes
		if s.open() {
			b.Nodes = s.Nodes.Union(s.Live.Nodes)
		}
	}
	for _, at := range []time.Time{s.Live.Start, s.Live.End} {
		if s.Now.Before(at) && (b.Again.IsZero() || at.Before(b.Again)) {
			b.Again = at
		}
	}
	return b
}

func (s *ReservationInput) open() bool {
	return !s.Now.Before(s.Live.Start) && s.Now.Before(s.Live.End)
}

func window(start, end time.Time) string {
	return fmt.Sprintf("workers are replaced from %s to %s", start.UTC().Format(time.RFC3339), end.UTC().Format(time.RFC3339))
}
