// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package fake_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

// withNodes starts a cluster of the nodes a and b.
func withNodes(t *testing.T, release string) cluster {
	t.Helper()
	c := start(t, release)
	c.Register(fake.Node{Name: "a"}, fake.Node{Name: "b"})
	return c
}

func TestReservationsKeepJobsAway(t *testing.T) {
	c := withNodes(t, fake.Slurm2605)
	at := func(d time.Duration) time.Time { return noon.Add(d) }
	ctx := t.Context()
	put := rest.Reservation{Name: "r", Start: at(time.Hour), End: at(2 * time.Hour), Nodes: "a", Flags: []string{"MAINT"}, Users: []string{"root"}}
	if err := c.client.PutReservation(ctx, put); err != nil {
		t.Fatal(err)
	}
	if !c.Reservations()[0].Start.Equal(put.Start) {
		t.Error("it starts at another time")
	}
	long := c.Submit(fake.Job{NodeList: []string{"a"}})
	short := c.Submit(fake.Job{NodeList: []string{"a"}, CPUs: 1, Limit: time.Hour})
	running := func(id int64) bool { j, _ := c.Job(id); return slices.Contains(j.State, "RUNNING") }
	if running(long) || !running(short) {
		t.Errorf("before the reservation the long job runs: %t, the short one: %t", running(long), running(short))
	}
	c.clock.Step(time.Hour + time.Second)
	list, err := c.client.Nodes(ctx, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if n := list.Nodes[0]; n.Reservation != "r" || !slices.Contains(n.State, "MAINTENANCE") || running(long) {
		t.Errorf("while it lasts the node is %v of %q", n.State, n.Reservation)
	}
	put.Flags = append(put.Flags, "SPEC_NODES")
	got, err := c.client.Reservations(ctx)
	if diff := cmp.Diff([]rest.Reservation{put}, got); err != nil || diff != "" {
		t.Errorf("reservations: %v (-want +got):\n%s", err, diff)
	}
	c.clock.Step(time.Hour)
	if got := c.Reservations(); len(got) != 0 || !running(long) {
		t.Errorf("when it is over there is %v, and the long job runs: %t", got, running(long))
	}
}

func TestReservationsAreChangedRefusedAndDeleted(t *testing.T) {
	c := withNodes(t, fake.Slurm2605)
	ctx := t.Context()
	c.Submit(fake.Job{NodeList: []string{"b"}})
	good := rest.Reservation{Name: "r", Start: noon.Add(time.Hour), End: noon.Add(2 * time.Hour), Nodes: "a", Flags: []string{"DAILY"}, Users: []string{"root"}}
	for name, test := range map[string]struct {
		change func(*rest.Reservation)
		code   int
	}{
		"without users":      {func(r *rest.Reservation) { r.Users = nil }, rest.CodeReservation},
		"of nobody's node":   {func(r *rest.Reservation) { r.Nodes = "x" }, rest.CodeInvalidNodeName},
		"of a busy node":     {func(r *rest.Reservation) { r.Nodes = "b" }, rest.CodeNodesBusy},
		"in the past":        {func(r *rest.Reservation) { r.Start, r.End = noon.Add(-2*time.Hour), noon.Add(-time.Hour) }, 2054},
		"that is as wanted":  {func(*rest.Reservation) {}, 0},
		"that ignores a job": {func(r *rest.Reservation) { r.Name, r.Nodes, r.Flags = "s", "b", []string{"IGNORE_JOBS"} }, 0},
	} {
		r := good
		if test.code != 0 {
			r.Name = "refused" // a new one, whatever was made before
		}
		test.change(&r)
		err := c.client.PutReservation(ctx, r)
		refusal, _ := errors.AsType[*rest.Error](err)
		if (test.code == 0) != (err == nil) || refusal != nil && refusal.Code != test.code {
			t.Errorf("a reservation %s: %v", name, err)
		}
	}
	if err := c.client.PutReservation(ctx, rest.Reservation{Name: "r", End: noon.Add(3 * time.Hour)}); err != nil {
		t.Error(err)
	}
	if r := c.Reservations()[0]; r.Name != "r" || !r.End.Equal(noon.Add(3*time.Hour)) || !r.Start.Equal(good.Start) || len(r.Nodes) != 1 {
		t.Errorf("a changed reservation is %+v", r)
	}
	c.clock.Step(4 * time.Hour)
	if r := c.Reservations()[0]; !r.Start.Equal(good.Start.AddDate(0, 0, 1)) {
		t.Errorf("a daily reservation is %+v the next day", r)
	}
	if err := c.client.DeleteReservation(ctx, "r"); err != nil {
		t.Error(err)
	}
	if err := c.client.DeleteReservation(ctx, "r"); !errors.Is(err, rest.Absent) {
		t.Errorf("deleting it twice: %v", err)
	}
	old := withNodes(t, fake.Slurm2411)
	if err := old.client.PutReservation(ctx, good); !errors.Is(err, rest.Refused) {
		t.Errorf("24.11 makes a reservation: %v", err)
	}
	if err := old.client.UpdateNodes(ctx, "a", rest.NodeUpdate{Topology: new("default:x")}); !errors.Is(err, rest.Refused) {
		t.Errorf("24.11 sets a topology: %v", err)
	}
}

func TestReservationsRecur(t *testing.T) {
	first := noon.Add(time.Hour)
	if first.Weekday() != time.Friday {
		t.Fatalf("noon is on a %s", first.Weekday())
	}
	for flag, want := range map[string]time.Time{
		"HOURLY": first.Add(time.Hour), "DAILY": first.AddDate(0, 0, 1), "WEEKLY": first.AddDate(0, 0, 7),
		"WEEKDAY": first.AddDate(0, 0, 3), "WEEKEND": first.AddDate(0, 0, 1),
	} {
		c := withNodes(t, fake.Slurm2605)
		r := rest.Reservation{Name: "r", Start: first, End: first.Add(30 * time.Minute), Nodes: "a", Flags: []string{flag}, Users: []string{"root"}}
		if err := c.client.PutReservation(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		c.clock.Step(time.Hour + 45*time.Minute)
		if got := c.Reservations(); len(got) != 1 || !got[0].Start.Equal(want) || got[0].End.Sub(got[0].Start) != 30*time.Minute {
			t.Errorf("after the first time a %s one is %+v, want it at %s", flag, got, want)
		}
	}
}

func TestWhatElseCanBeAsked(t *testing.T) {
	c := withNodes(t, fake.Slurm2605)
	ctx := t.Context()
	c.Submit(fake.Job{Nodes: 1})
	if err := c.client.CreateNode(ctx, "NodeName=e[1-2] CPUs=4 RealMemory=100 Feature=x,y State=EXTERNAL"); err != nil {
		t.Error(err)
	}
	partitions, err := c.client.Partitions(ctx)
	if diff := cmp.Diff([]rest.Partition{{Name: "main", State: []string{"UP"}, Nodes: "a,b,e[1-2]", NodeSets: "ALL", Total: 4}}, partitions); err != nil || diff != "" {
		t.Errorf("partitions: %v (-want +got):\n%s", err, diff)
	}
	if diag, err := c.client.Diag(ctx); err != nil || diag.JobsRunning != 1 || !diag.Since.Equal(noon) {
		t.Errorf("diag is %+v, %v", diag, err)
	}
	if states, err := c.client.JobStates(ctx, nil); err != nil || len(states) != 1 || states[0].ID != 1 {
		t.Errorf("states are %v, %v", states, err)
	}
}
