// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

func reserves(name, nodes, flags string) func(*system) string {
	return func(s *system) string { return s.Reserve(reservation{name, nodes, flags}) }
}

func unreserves(name string) func(*system) string {
	return func(s *system) string { return s.Unreserve(name) }
}

// working returns what jobs make of nodes, and nodes of jobs.
func working() scenario {
	return scenario{name: "jobs", steps: []step{
		{"register", registers(nodeA(), named("b"))},
		{"a job of two CPUs", submits(fake.Job{NodeList: []string{"a"}, CPUs: 2})},
		{"a second job, of one CPU", submits(fake.Job{NodeList: []string{"a"}, CPUs: 1})},
		{"a third job, of one CPU, which fills the node", submits(fake.Job{NodeList: []string{"a"}, CPUs: 1})},
		{"drain what is full", updates("a", rest.NodeUpdate{State: "DRAIN", Reason: "disk"})},
		{"a job that has to wait", submits(fake.Job{NodeList: []string{"a"}, CPUs: 1})},
		{"hold it", job((driver).Hold, 4)},
		{"undrain", updates("a", rest.NodeUpdate{State: "UNDRAIN"})},
		{"finish the first", job((driver).Finish, 1)},
		{"release the one that waits", job((driver).Release, 4)},
		{"cancel the second", job((driver).Cancel, 2)},
		{"finish the third", job((driver).Finish, 3)},
		{"delete below a job", deletes("a")},
		{"delete one with and one without a job", deletes("a,b")},
		{"register the latter again", registers(named("b"))},
		{"fail below a job", updates("a", rest.NodeUpdate{State: "FAIL", Reason: "old"})},
		{"resume below a job", updates("a", rest.NodeUpdate{State: "RESUME"})},
		{"drain below a job", updates("a", rest.NodeUpdate{State: "DRAIN", Reason: "disk"})},
		{"resume what drains", updates("a", rest.NodeUpdate{State: "RESUME"})},
		{"idle below a job", all(updates("a", rest.NodeUpdate{State: "DRAIN", Reason: "fan"}), updates("a", rest.NodeUpdate{State: "IDLE"}))},
		{"slurmd restarts below a job", registers(nodeA())},
		{"slurmctld restarts", restarts(true)},
		{"requeue on a drained node", all(updates("a", rest.NodeUpdate{State: "DRAIN", Reason: "disk"}), job((driver).Requeue, 4))},
		{"cancel what waits", job((driver).Cancel, 4)},
		{"undrain again", updates("a", rest.NodeUpdate{State: "UNDRAIN"})},
		{"a job of both nodes", submits(fake.Job{NodeList: []string{"a", "b"}})},
		{"drain one of them", updates("b", rest.NodeUpdate{State: "DRAIN", Reason: "disk"})},
		{"delete it", deletes("b")},
		{"take the other one down for a moment", all(updates("a", rest.NodeUpdate{State: "DOWN", Reason: "psu"}), updates("a", rest.NodeUpdate{State: "IDLE"}))},
		{"cancel the job", job((driver).Cancel, 5)},
		{"delete both", deletes("a,b")},
	}}
}

// reserving returns what reservations make of nodes.
func reserving() scenario {
	rests := func(r rest.Reservation) func(*system) string {
		return func(s *system) string {
			if r.End.IsZero() && r.Users != nil {
				r.Start, r.End = time.Now(), time.Now().Add(time.Hour)
			}
			return s.refused(s.client.PutReservation(s.t.Context(), r))
		}
	}
	unrests := func(s *system) string { return s.refused(s.client.DeleteReservation(s.t.Context(), "q")) }
	return scenario{name: "reservations", steps: []step{
		{"register", registers(nodeA(), named("b"))},
		{"reserve for maintenance", reserves("r", "a", "MAINT")},
		{"a job that has to wait", submits(fake.Job{NodeList: []string{"a"}, CPUs: 1})},
		{"drain", updates("a", rest.NodeUpdate{State: "DRAIN", Reason: "disk"})},
		{"delete the node", deletes("a")},
		{"undrain", updates("a", rest.NodeUpdate{State: "UNDRAIN"})},
		{"delete the node although down", all(
			updates("a", rest.NodeUpdate{State: "DOWN", Reason: "psu"}), deletes("a"), updates("a", rest.NodeUpdate{State: "IDLE"}),
		)},
		{"slurmctld restarts", restarts(true)},
		{"the reservation ends", unreserves("r")},
		{"reserve below a job", reserves("r", "a", "MAINT")},
		{"reserve below a job all the same", reserves("r", "a,b", "MAINT,IGNORE_JOBS")},
		{"a second of the same nodes", reserves("s", "a", "")},
		{"cancel the job", job((driver).Cancel, 1)},
		{"a second of the same nodes without a job", reserves("s", "a", "")},
		{"reserve a node that is not there", reserves("t", "c", "MAINT")},
		{"reserve nodes of which one is not there", reserves("t", "a,c", "MAINT")},
		{"delete the reservation", unreserves("r")},
		{"delete it again", unreserves("r")},
		{"reserve for users", reserves("r", "b", "")},
		{"drain what is reserved", updates("b", rest.NodeUpdate{State: "DRAIN", Reason: "disk"})},
		{"slurmctld restarts without state", restarts(false)},
		{"register anew", registers(nodeA(), named("b"))},
		{"reserve by REST", rests(rest.Reservation{Name: "q", Nodes: "a", Flags: []string{"MAINT", "IGNORE_JOBS"}, Users: []string{"alice"}})},
		{"with another node", rests(rest.Reservation{Name: "q", Nodes: "a,b"})},
		{"with a node that is not there", rests(rest.Reservation{Name: "q", Nodes: "a,c"})},
		{"with none that is there", rests(rest.Reservation{Name: "q", Nodes: "c"})},
		{"a new one with a node that is not there", rests(rest.Reservation{Name: "p", Nodes: "b,c", Flags: []string{"MAINT"}, Users: []string{"alice"}})},
		{"a new one for nobody", rests(rest.Reservation{Name: "p", Nodes: "a", Start: time.Now(), End: time.Now().Add(time.Hour)})},
		{"reserve by REST in the past", rests(rest.Reservation{
			Name: "p", Nodes: "a", Users: []string{"alice"}, Start: time.Now().Add(-2 * time.Hour), End: time.Now().Add(-time.Hour),
		})},
		{"delete by REST", unrests},
		{"delete by REST again", unrests},
	}}
}
