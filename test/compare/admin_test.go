// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
	"strings"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

// named is node a under another name.
func named(name string, edits ...func(*fake.Node)) fake.Node {
	n := nodeA(edits...)
	n.Name = name
	return n
}

// updates changes nodes by REST, as the operator does.
func updates(nodes string, u rest.NodeUpdate) func(*system) string {
	return func(s *system) string { return s.update(nodes, u) }
}

func posts(body string) func(*system) string {
	return func(s *system) string { return s.post(body) }
}

func deletes(nodes string) func(*system) string {
	return func(s *system) string { return refusal(s.client.DeleteNodes(s.t.Context(), nodes)) }
}

// restarts lets slurmctld end and start again.
func restarts(keepState bool) func(*system) string {
	return func(s *system) string { s.Stop(); s.Start(keepState); return "" }
}

// reconfigures asks again, twice at most, when slurmctld took longer than MessageTimeout, as one does on a busy machine. It has reconfigured then.
func reconfigures(s *system) string {
	const timedOut = "unavailable 5004"
	said := timedOut
	for i := 0; i < 3 && said == timedOut; i++ {
		said = refusal(s.client.Reconfigure(s.t.Context()))
	}
	return said
}

// startsAnew does something and returns whether the slurmd of a node has started since, within a time. Slurm counts whole seconds.
func startsAnew(name string, within time.Duration, do func(*system) string) func(*system) string {
	return func(s *system) string {
		started := func() (time.Time, error) {
			n, err := s.client.Node(s.t.Context(), name)
			if err != nil {
				return time.Time{}, err
			}
			return n.SlurmdTime, nil
		}
		before, err := started()
		if err != nil {
			return err.Error()
		}
		<-time.After(time.Until(before.Add(2 * time.Second)))
		said := do(s)
		tick := time.NewTicker(300 * time.Millisecond)
		defer tick.Stop()
		for deadline := time.Now().Add(within); time.Now().Before(deadline); <-tick.C {
			if after, err := started(); err == nil && after.After(before) {
				return said + ", started anew"
			}
		}
		return said + ", went on"
	}
}

func deletesPartition(name string) func(*system) string {
	return func(s *system) string { return refusal(s.client.DeletePartition(s.t.Context(), name)) }
}

// leaving is about partitions that are deleted: slurmctld does so with those that no job needs.
func leaving() scenario {
	inThree := func(n *fake.Node) { n.Partitions = []string{"main", "low", "high"} }
	return scenario{name: "partitions that go", conf: "PartitionName=low Nodes=ALL\nPartitionName=high Nodes=ALL\n", steps: []step{
		{"register", registers(nodeA(inThree))},
		{"submit", submits(fake.Job{Nodes: 1, Partition: "low"})},
		{"submit another, which waits", submits(fake.Job{Nodes: 1, Partition: "low"})},
		{"delete the partition", deletesPartition("low")},
		{"finish, and the other runs", job((driver).Finish, 1)},
		{"delete it while the other runs", deletesPartition("low")},
		{"finish the other", job((driver).Finish, 2)},
		{"delete it", deletesPartition("low")},
		{"delete it again", deletesPartition("low")},
		{"delete one that never was", deletesPartition("none")},
	}}
}

// all does several things in one step and joins what they return.
func all(do ...func(*system) string) func(*system) string {
	return func(s *system) string {
		var said []string
		for _, f := range do {
			if words := f(s); words != "" {
				said = append(said, words)
			}
		}
		return strings.Join(said, ", ")
	}
}

// describing returns what administrators and the operator write beside states.
func describing() scenario {
	return scenario{name: "descriptions", steps: []step{
		{"register", registers(nodeA(func(n *fake.Node) { n.Features, n.Weight = []string{"f", "g"}, 3 }), named("b"))},
		{"comment", updates("a", rest.NodeUpdate{Comment: new("mine")})},
		{"comment on both", updates("a,b", rest.NodeUpdate{Comment: new("ours")})},
		{"no comment", updates("a", rest.NodeUpdate{Comment: new("")})},
		{"extra", updates("a", rest.NodeUpdate{Extra: new("x=1")})},
		{"other features", updates("a", rest.NodeUpdate{Features: []string{"g", "h"}})},
		{"fewer active features", updates("a", rest.NodeUpdate{FeaturesActive: []string{"g"}})},
		{"active features that are not available", updates("a", rest.NodeUpdate{FeaturesActive: []string{"z"}})},
		{"features without one that is active", updates("a", rest.NodeUpdate{Features: []string{"h"}})},
		{"features and active ones", updates("a", rest.NodeUpdate{Features: []string{"i", "j"}, FeaturesActive: []string{"j"}})},
		{"no features", updates("a", rest.NodeUpdate{Features: []string{}, FeaturesActive: []string{}})},
		{"weight", posts(`{"weight": {"set": true, "number": 7}}`)},
		{"drain, comment and feature at once", updates("a", rest.NodeUpdate{State: "DRAIN", Reason: "disk", Comment: new("c"), Features: []string{"k"}})},
		{"a refused state with a comment", updates("a", rest.NodeUpdate{State: "ALLOCATED", Comment: new("never")})},
		{"a refused state with a reason", updates("a", rest.NodeUpdate{State: "ALLOCATED", Reason: "never"})},
		{"a refused state with features", updates("a", rest.NodeUpdate{State: "ALLOCATED", Features: []string{"m"}, FeaturesActive: []string{"m"}})},
		{"undrain with a reason", updates("a", rest.NodeUpdate{State: "UNDRAIN", Reason: "well"})},
		{"a refused state of an idle node with a reason", updates("a", rest.NodeUpdate{State: "ALLOCATED", Reason: "never"})},
		{"drain", updates("a", rest.NodeUpdate{State: "DRAIN", Reason: "disk"})},
		{"undrain with features that are refused", updates("a", rest.NodeUpdate{State: "UNDRAIN", FeaturesActive: []string{"z"}})},
		{"slurmd registers with other words", registers(nodeA(func(n *fake.Node) { n.Features, n.Extra, n.Weight = []string{"l"}, "e", 8 }))},
		{"slurmctld restarts", restarts(true)},
		{"extra and weight again", all(updates("a", rest.NodeUpdate{Extra: new("x=2"), Comment: new("d")}), posts(`{"weight": {"set": true, "number": 9}}`))},
		{"reconfigure", reconfigures},
	}}
}

// listing is about several nodes at once, nodes that are not there, and users who may not.
//
// asksAbout asks about one node, as the Slurm cache does right before it drains it.
func asksAbout(name string) func(s *system) string {
	return func(s *system) string {
		n, err := s.client.Node(s.t.Context(), name)
		if err != nil {
			return refusal(err)
		}
		return fmt.Sprint(n.Name, n.State, n.Reason, n.ReasonUser)
	}
}

// A node whose slurmd answers is DOWN only until its next answer, at a time that slurmctld chooses (ReturnToService=2): it is set
// DOWN in the same step in which it stops being so. The scenario of lost slurmds has what stays down.
func listing() scenario {
	return scenario{name: "lists and rights", steps: []step{
		{"register", registers(nodeA(), named("b"))},
		{"drain of a node that is not there", updates("c", rest.NodeUpdate{State: "DRAIN", Reason: "disk"})},
		{"drain of one node that is not there, at the end", updates("b,c", rest.NodeUpdate{State: "DRAIN", Reason: "disk"})},
		{"undrain of one node that is not there, first", updates("c,b", rest.NodeUpdate{State: "UNDRAIN"})},
		{"drain of one node that is not there, first in their order", updates("aa,b", rest.NodeUpdate{State: "DRAIN", Reason: "fan"})},
		{"resume of one that is idle and one that is not", all(
			updates("a", rest.NodeUpdate{State: "IDLE"}), updates("b", rest.NodeUpdate{State: "DRAIN", Reason: "fan"}),
			updates("a,b", rest.NodeUpdate{State: "RESUME"}),
		)},
		{"drain both", updates("b,a", rest.NodeUpdate{State: "DRAIN", Reason: "psu"})},
		{"ask about one node", asksAbout("a")},
		{"ask about a node that is not there", asksAbout("c")},
		{"drain without rights", func(s *system) string {
			return refusal(s.as("alice").UpdateNodes(s.t.Context(), "a", rest.NodeUpdate{State: "DRAIN", Reason: "fan"}))
		}},
		{"delete without rights", func(s *system) string { return refusal(s.as("alice").DeleteNodes(s.t.Context(), "a")) }},
		{"reconfigure without rights", func(s *system) string { return refusal(s.as("alice").Reconfigure(s.t.Context())) }},
		{"delete a node that is not there", deletes("c")},
		{"delete one that is not there, first in their order", deletes("aa,b")},
		{"register it again", registers(named("b"))},
		{"delete one that is and one that is not there", deletes("b,c")},
		{"fail what is drained", updates("a", rest.NodeUpdate{State: "FAIL", Reason: "old"})},
		{"drain what fails", updates("a", rest.NodeUpdate{State: "DRAIN", Reason: "oldest"})},
		{"resume", updates("a", rest.NodeUpdate{State: "RESUME"})},
		{"down, and idle", all(updates("a", rest.NodeUpdate{State: "DOWN", Reason: "psu"}), updates("a", rest.NodeUpdate{State: "IDLE"}))},
		{"down, and undrain", all(updates("a", rest.NodeUpdate{State: "DOWN", Reason: "psu"}), updates("a", rest.NodeUpdate{State: "UNDRAIN"}))},
		{"undrain, and down", all(updates("a", rest.NodeUpdate{State: "UNDRAIN"}), updates("a", rest.NodeUpdate{State: "DOWN", Reason: "psu"}), answers("a"))},
		{"slurmd registers although down", all(updates("a", rest.NodeUpdate{State: "DOWN", Reason: "psu"}), registers(nodeA()))},
		{"delete a down node", all(updates("a", rest.NodeUpdate{State: "DOWN", Reason: "psu"}), deletes("a"))},
	}}
}

// missing returns what becomes of jobs that name a node whose record was deleted: they wait, until slurmctld reads its configuration.
func missing() scenario {
	return scenario{name: "nodes that jobs name", steps: []step{
		{"register", registers(named("a"), named("b"))},
		{"drain", updates("a,b", rest.NodeUpdate{State: "DRAIN", Reason: "disk"})},
		{"jobs that wait", all(submits(fake.Job{NodeList: []string{"a"}}), submits(fake.Job{NodeList: []string{"b"}}), submits(fake.Job{NodeList: []string{"a", "b"}}), submits(fake.Job{Nodes: 1}))},
		{"hold two of them", all(job((driver).Hold, 1), job((driver).Hold, 4))},
		{"delete and register again before the configuration is read", all(deletes("a"), registers(named("a")), updates("a", rest.NodeUpdate{State: "DRAIN", Reason: "disk"}))},
		{"reconfigure", reconfigures},
		{"delete", deletes("a")},
		{"reconfigure without the node", reconfigures},
		{"delete the other", deletes("b")},
		{"slurmctld restarts without the node", restarts(true)},
	}}
}

// restarting returns what slurmctld keeps when it ends.
func restarting() scenario {
	return scenario{name: "restarts", steps: []step{
		{"register", registers(nodeA(), named("b"), named("c"))},
		{"drain and a job", all(updates("a", rest.NodeUpdate{State: "DRAIN", Reason: "disk"}), submits(fake.Job{NodeList: []string{"c"}}))},
		{"slurmctld restarts with a node that is down", all(updates("b", rest.NodeUpdate{State: "DOWN", Reason: "fan"}), restarts(true))},
		{"reconfigure with a node that is down", all(updates("b", rest.NodeUpdate{State: "DOWN", Reason: "fan"}), reconfigures)},
		// One that had not registered yet would do so with a slurmctld without state, which lacks the node otherwise.
		{"slurmd restarts below its job", startsAnew("c", time.Minute, registers(named("c")))},
		{"slurmctld restarts without state", restarts(false)},
		{"slurmds register anew", registers(nodeA(), named("c"))},
		{"submit", submits(fake.Job{NodeList: []string{"a"}})},
		{"drain", updates("a,c", rest.NodeUpdate{State: "DRAIN", Reason: "disk"})},
		{"slurmctld restarts with a job on a drained node", restarts(true)},
		{"undrain", updates("a,c", rest.NodeUpdate{State: "UNDRAIN"})},
		{"cancel", job((driver).Cancel, 1)},
	}}
}
