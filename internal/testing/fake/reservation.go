// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
)

// Reservation is what slurmctld has on a reservation. While it lasts, its nodes take no jobs and are MAINTENANCE (with the
// flag MAINT) or RESERVED; before, they take no job that would not end in time.
type Reservation struct {
	Name     string
	Start    time.Time
	End      time.Time
	Nodes    []string
	Flags    []string
	Users    []string
	Accounts []string

	members hostlist.Set
	number  int // counts the reservations that were made
}

// on reports whether the reservation is active at a time.
func (r *Reservation) on(now time.Time) bool { return !now.Before(r.Start) && now.Before(r.End) }

func (r *Reservation) has(flag string) bool { return slices.Contains(r.Flags, flag) }

// Reservations returns all reservations, by name.
func (s *Slurm) Reservations() []Reservation {
	defer s.lock()()
	var list []Reservation
	for _, name := range slices.Sorted(maps.Keys(s.reservations)) {
		list = append(list, *s.reservations[name])
	}
	return list
}

// Reserve makes a reservation, or changes the one of that name, as "scontrol create reservation" does. It returns what Slurm would
// answer.
func (s *Slurm) Reserve(r Reservation) error {
	defer s.lock()()
	m := reservationMessage{
		Name: r.Name, Start: noVal{!r.Start.IsZero(), r.Start.Unix()}, End: noVal{!r.End.IsZero(), r.End.Unix()},
		Nodes: r.Nodes, Flags: r.Flags, Users: r.Users, Accounts: r.Accounts,
	}
	if e := s.reserve("root", m); e != nil {
		return fmt.Errorf("making reservation %s: %s", r.Name, e.Text)
	}
	return nil
}

// Unreserve deletes a reservation, as "scontrol delete" does.
func (s *Slurm) Unreserve(name string) error {
	defer s.lock()()
	if e := s.unreserve("root", name); e != nil {
		return fmt.Errorf("deleting reservation %s: %s", name, e.Text)
	}
	return nil
}

// reserved is the reservation that holds a node now, the youngest if there are several, or nil; and whether one of them is for
// maintenance.
func (s *Slurm) reserved(n *node) (holder *Reservation, maintenance bool) {
	for _, r := range s.reservations {
		if !r.on(s.clock) || !r.members.Contains(n.Name) {
			continue
		}
		maintenance = maintenance || r.has("MAINT")
		if holder == nil || r.number > holder.number {
			holder = r
		}
	}
	return holder, maintenance
}

// open reports whether no reservation keeps a node from a job that starts now. Those in the job's own reservation are its only ones.
func (s *Slurm) open(n *node, j *job) bool {
	if r := s.reservations[j.Reservation]; j.Reservation != "" {
		return r != nil && r.members.Contains(n.Name) && !s.clock.Before(r.Start) && s.clock.Before(r.End)
	}
	for _, r := range s.reservations {
		ends := j.Limit > 0 && !s.clock.Add(j.Limit).After(r.Start)
		if s.clock.Before(r.End) && !ends && r.members.Contains(n.Name) {
			return false
		}
	}
	return true
}

// turnReservations lets reservations begin and end between two times, and reports whether one did; those that recur move on.
func (s *Slurm) turnReservations(from, to time.Time) (turned bool) {
	for name, r := range s.reservations {
		if from.Before(r.Start) && !to.Before(r.Start) {
			s.nodeTime, turned = r.Start, true
		}
		if to.Before(r.End) {
			continue
		}
		s.nodeTime, s.resvTime, turned = r.End, r.End, true
		if r.recurs(r.Start).IsZero() {
			delete(s.reservations, name)
			continue
		}
		for length := r.End.Sub(r.Start); !to.Before(r.End); r.End = r.Start.Add(length) {
			r.Start = r.recurs(r.Start)
		}
	}
	return turned
}

// recurs is when a reservation that began at start begins anew; zero when it does not.
func (r *Reservation) recurs(start time.Time) time.Time {
	day := start.AddDate(0, 0, 1)
	switch {
	case r.has("HOURLY"):
		return start.Add(time.Hour)
	case r.has("DAILY"):
		return day
	case r.has("WEEKLY"):
		return start.AddDate(0, 0, 7)
	case r.has("WEEKDAY"), r.has("WEEKEND"):
		for r.has("WEEKEND") != (day.Weekday() == time.Saturday || day.Weekday() == time.Sunday) {
			day = day.AddDate(0, 0, 1)
		}
		return day
	}
	return time.Time{}
}

// reservationMessage is the body of POST reservation.
type reservationMessage struct {
	Name     string   `json:"name"`
	Start    noVal    `json:"start_time"`
	End      noVal    `json:"end_time"`
	Nodes    []string `json:"node_list"`
	Flags    []string `json:"flags"`
	Users    []string `json:"users"`
	Accounts []string `json:"accounts"`
}

// noVal is a number with flags.
type noVal struct {
	Set    bool  `json:"set"`
	Number int64 `json:"number"`
}

func (s *Slurm) putReservation(w *shape, user string, body []byte) reply {
	var m reservationMessage
	if json.Unmarshal(body, &m) != nil {
		return reply{status: http.StatusBadRequest, body: []byte("Failure during parsing"), text: true}
	}
	if e := s.reserve(user, m); e != nil {
		return s.refuse(w.version, "Error creating reservation  "+m.Name, e)
	}
	s.writes = append(s.writes, Write{Time: s.clock, User: user, Verb: "reserve", Nodes: strings.Join(m.Nodes, ","), Name: m.Name})
	w.reserved(m)
	return reply{status: http.StatusOK, body: w.b}
}

func (s *Slurm) reserve(user string, m reservationMessage) *Error {
	if user != "slurm" && user != "root" {
		return &Error{Number: 2010, Text: "Invalid user id"}
	}
	old := s.reservations[m.Name]
	next := &Reservation{Name: m.Name, Flags: []string{"SPEC_NODES"}}
	if old != nil {
		*next = *old
	}
	if m.Start.Set {
		next.Start = time.Unix(m.Start.Number, 0)
	}
	if m.End.Set {
		next.End = time.Unix(m.End.Number, 0)
	}
	if users := entries(&m.Users); users != nil {
		next.Users = users
	}
	if accounts := entries(&m.Accounts); accounts != nil {
		next.Accounts = accounts
	}
	next.Flags = slices.Clone(next.Flags)
	for _, flag := range m.Flags {
		if !next.has(flag) {
			next.Flags = slices.Insert(next.Flags, len(next.Flags)-1, flag)
		}
	}
	if len(next.Users)+len(next.Accounts) == 0 {
		return &Error{Number: 2053, Text: "Requested reservation is invalid"}
	}
	if !next.End.After(next.Start) || !next.End.After(s.clock) {
		return &Error{Number: 2054, Text: "Invalid time specified"}
	}
	if m.Nodes != nil {
		if e := s.reserveNodes(next, m.Nodes, old != nil); e != nil {
			return e
		}
	}
	if old == nil {
		s.lastReservation++
		next.number = s.lastReservation
	}
	s.reservations[m.Name] = next
	s.nodeTime, s.resvTime = s.clock, s.clock
	return nil
}

// reserveNodes gives nodes to a reservation, unless jobs that run there would not end in time. In a change Slurm leaves out the nodes
// that it does not know; it refuses a new reservation with one of them.
func (s *Slurm) reserveNodes(r *Reservation, lists []string, change bool) *Error {
	names, ok := sorted(lists)
	if !ok {
		return invalidName()
	}
	r.Nodes, r.members = nil, hostlist.SetOf()
	for _, name := range names {
		n := s.nodes[name]
		switch {
		case n == nil && change:
			continue
		case n == nil:
			return invalidName()
		}
		for id := range n.running {
			if j := s.jobs[id]; !r.has("IGNORE_JOBS") && (j.end.IsZero() || j.end.After(r.Start)) {
				return &Error{Number: 2016, Text: "Requested nodes are busy"}
			}
		}
		r.Nodes = append(r.Nodes, name)
		r.members.Add(name)
	}
	if len(r.Nodes) == 0 {
		return &Error{Number: 2053, Text: "Requested reservation is invalid"}
	}
	return nil
}

func (s *Slurm) deleteReservation(w *shape, user, name string) reply {
	if e := s.unreserve(user, name); e != nil {
		return s.refuse(w.version, "Error deleting reservation "+name, e)
	}
	s.writes = append(s.writes, Write{Time: s.clock, User: user, Verb: "unreserve", Name: name})
	w.result()
	return reply{status: http.StatusOK, body: w.b}
}

func (s *Slurm) unreserve(user, name string) *Error {
	switch {
	case user != "slurm" && user != "root":
		return &Error{Number: 2010, Text: "Invalid user id"}
	case s.reservations[name] == nil:
		return &Error{Number: 2053, Text: "Requested reservation is invalid"}
	}
	delete(s.reservations, name)
	s.nodeTime, s.resvTime = s.clock, s.clock
	s.schedule()
	return nil
}

func (w *shape) reservationsAnswer(list []*Reservation, now time.Time) {
	w.object("", func() {
		w.list("reservations", func() {
			for _, r := range list {
				w.reservation(r)
			}
		})
		w.time("last_update", now)
		w.meta()
		w.errors()
		w.warnings()
	})
}

func (w *shape) reservation(r *Reservation) {
	cores := 0
	for _, name := range r.Nodes {
		if n := w.slurm.nodes[name]; n != nil {
			cores += n.CPUs
		}
	}
	w.object("", func() {
		w.text("accounts", strings.Join(r.Accounts, ","))
		w.text("burst_buffer", "")
		w.int("core_count", int64(cores))
		w.list("core_specializations", func() {})
		w.time("end_time", r.End)
		w.text("features", "")
		w.texts("flags", r.Flags)
		w.text("groups", "")
		w.text("licenses", "")
		w.int("max_start_delay", 0)
		w.text("name", r.Name)
		w.int("node_count", int64(len(r.Nodes)))
		w.text("node_list", hostlist.Compress(slices.Clone(r.Nodes)))
		w.text("partition", "")
		w.object("purge_completed", func() { w.number("time", true, false, 300) })
		w.time("start_time", r.Start)
		w.text("tres", "")
		w.text("users", strings.Join(r.Users, ","))
	})
}

// reserved is the answer to a reservation that was made: the message as slurmrestd understood it.
func (w *shape) reserved(m reservationMessage) {
	w.object("", func() {
		w.list("reservations", func() {
			w.object("", func() {
				w.texts("accounts", m.Accounts)
				w.number("end_time", m.End.Set, false, m.End.Number)
				w.texts("flags", m.Flags)
				w.text("name", m.Name)
				w.texts("node_list", m.Nodes)
				w.number("start_time", m.Start.Set, false, m.Start.Number)
				w.texts("users", m.Users)
			})
		})
		w.meta()
		w.errors()
		w.warnings()
	})
}
