// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodesetplan_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coxswain-hpc/coxswain/internal/controller/slinky/nodeset/nodesetplan"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

func known(a node.Answer) func(*workerpod.Pod) {
	return func(p *workerpod.Pod) { p.Registered = a }
}

func TestRepair(t *testing.T) {
	missing, there := known(node.No), known(node.Yes)
	absentFor := func(d time.Duration) func(*workerpod.Pod) {
		return func(p *workerpod.Pod) { p.Absent = noon.Add(-d) }
	}
	forgotten := func(p *workerpod.Pod) { p.Was, p.Forgotten = true, true }
	repairing := func(p *workerpod.Pod) { p.Retired, p.Cordoned = workerpod.Unregistered, true }
	tests := []struct {
		name   string
		lost   bool
		pods   []workerpod.Pod
		others []workerpod.Pod
		want   nodesetplan.Plan
	}{
		{name: "a worker whose record somebody deleted is made anew", pods: []workerpod.Pod{aPod(0, there), aPod(1, missing), aPod(2, there)},
			want: nodesetplan.Plan{Retire: retire(workerpod.Unregistered, "w-1")}},
		{name: "a worker that has just started may still register", pods: []workerpod.Pod{aPod(0, there), aPod(1, missing, readyFor(time.Minute)), aPod(2, there)},
			want: nodesetplan.Plan{Again: noon.Add(time.Minute)}},
		{name: "a worker that Slurm lacks since a moment may still register, whatever another clock says since when it is ready",
			pods: []workerpod.Pod{aPod(0, there), aPod(1, missing, absentFor(time.Minute)), aPod(2, there)}, want: nodesetplan.Plan{Again: noon.Add(time.Minute)}},
		{name: "a mark stays when nobody remembers since when", pods: []workerpod.Pod{aPod(0, there), aPod(1, missing, repairing, absentFor(0)), aPod(2, there)}},
		{name: "a worker that is not ready may register later", pods: []workerpod.Pod{aPod(0, there), aPod(1, missing, unready), aPod(2, there)}},
		{name: "nobody is made anew when Slurm does not answer", pods: []workerpod.Pod{aPod(0), aPod(1), aPod(2)}},
		{name: "a mark stays when Slurm does not answer", pods: []workerpod.Pod{aPod(0), aPod(1, repairing), aPod(2)}},
		{name: "no more workers are made anew than may be unavailable, one after the other",
			pods: []workerpod.Pod{aPod(0, missing), aPod(1, missing), aPod(2, there)}, others: []workerpod.Pod{aPod(7, there)},
			want: nodesetplan.Plan{Retire: retire(workerpod.Unregistered, "w-1")}},
		{name: "the next worker waits until the first is back",
			pods: []workerpod.Pod{aPod(0, missing), aPod(1, missing), aPod(2, unready)}, others: []workerpod.Pod{aPod(7, there), aPod(8, there)}},
		{name: "the worker that was chosen stays chosen", pods: []workerpod.Pod{aPod(0, missing, repairing), aPod(1, missing), aPod(2, there)}, others: []workerpod.Pod{aPod(7, there)}},
		{name: "a worker that has registered meanwhile stays", pods: []workerpod.Pod{aPod(0, there, repairing), aPod(1, there), aPod(2, there)},
			want: nodesetplan.Plan{Unretire: []string{"w-0"}}},

		{name: "when slurmctld has lost its state, nothing is done", pods: []workerpod.Pod{aPod(0, missing), aPod(1, missing), aPod(2, missing)},
			want: nodesetplan.Plan{Lost: 3}},
		{name: "when slurmctld knows a few again, nothing is done", pods: []workerpod.Pod{aPod(0, missing), aPod(1, missing), aPod(2, there)}, want: nodesetplan.Plan{Lost: 2}},
		{name: "when slurmctld has lost the records of other NodeSets rather than of this one, nothing is done",
			pods: []workerpod.Pod{aPod(0, missing), aPod(1, there), aPod(2, there)}, others: []workerpod.Pod{aPod(7, missing), aPod(8, missing)}, want: nodesetplan.Plan{Lost: 1}},
		{name: "workers that are to go count, since none of them may go for being absent",
			pods: []workerpod.Pod{aPod(0, missing, updating, old), aPod(1, missing, updating, old), aPod(2, there)}, want: nodesetplan.Plan{Lost: 2, Unretire: []string{"w-0", "w-1"}}},
		{name: "when slurmctld has lost its state, a worker that was chosen before stays", pods: []workerpod.Pod{aPod(0, missing, repairing), aPod(1, missing), aPod(2, missing)},
			want: nodesetplan.Plan{Lost: 3, Unretire: []string{"w-0"}}},
		{name: "workers that have not had their time to register prove nothing",
			pods:   []workerpod.Pod{aPod(0, missing, readyFor(time.Second)), aPod(1, missing, readyFor(time.Second)), aPod(2, missing)},
			others: []workerpod.Pod{aPod(7, there)}, want: nodesetplan.Plan{Retire: retire(workerpod.Unregistered, "w-2"), Again: noon.Add(119 * time.Second)}},
		{name: "what is lost is lost until the last worker is back", lost: true, pods: []workerpod.Pod{aPod(0, missing), aPod(1, there), aPod(2, there)}, want: nodesetplan.Plan{Lost: 1}},
		{name: "a worker that vanished with most others is lost, whoever has come since", pods: []workerpod.Pod{aPod(0, missing, forgotten), aPod(1, there), aPod(2, there)}, want: nodesetplan.Plan{Lost: 1}},
		{name: "the successor of a lost worker is not lost, since Slurm never had it", pods: []workerpod.Pod{aPod(0, missing, forgotten, func(p *workerpod.Pod) { p.Was = false }, unready), aPod(1, there), aPod(2, there)}},
		{name: "what is lost is lost whether it is ready or not", lost: true, pods: []workerpod.Pod{aPod(0, missing, unready), aPod(1, there), aPod(2, there)}, want: nodesetplan.Plan{Lost: 1}},
		{name: "nothing is lost any more when the last worker is back", lost: true, pods: []workerpod.Pod{aPod(0, there), aPod(1, there), aPod(2, there)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			check(t, nodesetplan.Input{
				Now: noon, SnapshotTime: noon, NodeListTime: noon, Replicas: 3, Revision: "new", MaxUnavailable: 1, Pods: tt.pods, Others: tt.others, SlurmStateLost: tt.lost,
			}, tt.want)
		})
	}
	t.Run("an answer from before the worker had its time does not count, and the next one is waited for", func(t *testing.T) {
		check(t, nodesetplan.Input{
			Now: noon, SnapshotTime: noon.Add(-time.Hour), NodeListTime: noon.Add(-time.Hour), Replicas: 1, Revision: "new", MaxUnavailable: 1, Pods: []workerpod.Pod{aPod(0, missing)}, Others: []workerpod.Pod{aPod(7, there)},
		}, nodesetplan.Plan{Again: noon.Add(time.Second)})
	})
	for name, pods := range map[string][]workerpod.Pod{
		"the word that nothing changed since an old list does not count, and another list is asked for": {aPod(0, missing), aPod(1, there)},
		"the word that nothing changed since an old list does not count for a loss of state":            {aPod(0, missing), aPod(1, missing)},
		"a mark stays while another list is asked for":                                                  {aPod(0, missing, repairing), aPod(1, there)},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, nodesetplan.Input{
				Now: noon, SnapshotTime: noon, NodeListTime: noon.Add(-time.Hour), Replicas: 2, Revision: "new", MaxUnavailable: 1, Pods: pods,
			}, nodesetplan.Plan{Relist: true, Again: noon.Add(time.Second)})
		})
	}
	t.Run("a list that is new enough for one of two workers does not count", func(t *testing.T) {
		check(t, nodesetplan.Input{
			Now: noon, SnapshotTime: noon, NodeListTime: noon.Add(-time.Minute), Replicas: 2, Revision: "new", MaxUnavailable: 1,
			Pods: []workerpod.Pod{aPod(0, missing), aPod(1, missing, absentFor(150*time.Second))}, Others: []workerpod.Pod{aPod(7, there), aPod(8, there)},
		}, nodesetplan.Plan{Relist: true, Again: noon.Add(time.Second)})
	})
}

func TestWorkersThatSlurmHasNeverHadAreNotLost(t *testing.T) {
	missing, there, was := known(node.No), known(node.Yes), func(p *workerpod.Pod) { p.Was = true }
	never := []workerpod.Pod{aPod(0, missing), aPod(1, missing), aPod(2, missing)} // made an hour ago
	tests := []struct {
		name   string
		since  time.Duration // for which slurmctld has run; zero is not known
		lost   bool
		pods   []workerpod.Pod
		others []workerpod.Pod
		want   nodesetplan.Plan
	}{
		{name: "workers that Slurm never had are not lost when slurmctld has run for longer than they", since: 2 * time.Hour, pods: never},
		{name: "workers that Slurm never had are not lost even if they were taken for lost", since: 2 * time.Hour, lost: true, pods: never},
		{name: "workers may be lost when it is not known since when slurmctld has run", pods: never, want: nodesetplan.Plan{Lost: 3}},
		{name: "workers may be lost when slurmctld has started after they were made", since: time.Minute, pods: never, want: nodesetplan.Plan{Lost: 3}},
		{name: "workers may be lost when slurmctld has started at about the same time, by clocks that differ", since: time.Hour + 30*time.Second, pods: never, want: nodesetplan.Plan{Lost: 3}},
		{name: "a worker that Slurm once had is lost", since: 2 * time.Hour, pods: []workerpod.Pod{aPod(0, missing, was), aPod(1, missing), aPod(2, missing)}, want: nodesetplan.Plan{Lost: 1}},
		{name: "workers that Slurm never had are no sign that another one is lost", since: 2 * time.Hour, pods: []workerpod.Pod{aPod(0, missing, was), aPod(1, missing), aPod(2, missing)}, others: []workerpod.Pod{aPod(7, there)}},
		{name: "a few workers that Slurm never had are made anew", since: 2 * time.Hour, pods: []workerpod.Pod{aPod(0, missing), aPod(1, there), aPod(2, there)},
			want: nodesetplan.Plan{Retire: retire(workerpod.Unregistered, "w-0")}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in := nodesetplan.Input{
				Now: noon, SnapshotTime: noon, NodeListTime: noon, Replicas: 3, Revision: "new", MaxUnavailable: 1, Pods: tt.pods, Others: tt.others, SlurmStateLost: tt.lost,
			}
			if tt.since > 0 {
				in.SlurmctldSince = noon.Add(-tt.since)
			}
			check(t, in, tt.want)
		})
	}
	for name, want := range map[string]bool{"w-0": true, "w-1": false, "w-2": false, "w-3": false} {
		pods := map[string]workerpod.Pod{"w-0": aPod(0, missing), "w-1": aPod(1, missing, was), "w-2": aPod(2, there), "w-3": aPod(3, missing, readyFor(time.Second))}
		if in := (nodesetplan.Input{Now: noon, SnapshotTime: noon, NodeListTime: noon, Pods: []workerpod.Pod{pods[name]}}); in.Unregistered() != want {
			t.Errorf("%s: since when slurmctld runs is asked for: %t", name, !want)
		}
	}
}

// However a state is lost, and whatever comes back of it in whatever order, no worker that has been missing since is made anew, and
// otherwise never more than may be unavailable.
func TestNoLossOfStateTakesWorkers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 12).Draw(t, "workers")
		in := nodesetplan.Input{
			Now: noon, SnapshotTime: noon, NodeListTime: noon, Replicas: size, Revision: "new", Rolling: true, MaxUnavailable: rapid.IntRange(1, 3).Draw(t, "maxUnavailable"),
		}
		for i := range size {
			in.Pods = append(in.Pods, aPod(i, known(node.Yes)))
		}
		for i := range rapid.IntRange(0, 6).Draw(t, "others") {
			in.Others = append(in.Others, aPod(100+i, known(node.Yes)))
		}
		each := func(do func(p *workerpod.Pod)) {
			for i := range in.Pods {
				do(&in.Pods[i])
			}
			for i := range in.Others {
				do(&in.Others[i])
			}
		}
		gone := rapid.IntRange(0, size).Draw(t, "of ours") // what an older state did not have
		each(func(p *workerpod.Pod) {
			if p.Ordinal >= 100 || p.Ordinal < gone {
				p.Registered = node.No
			}
		})
		lost := gone > 0 && gone+len(in.Others) > size-gone
		for range 20 {
			plan := nodesetplan.Make(in)
			in.SlurmStateLost = plan.Lost > 0
			unregistered := 0
			for _, r := range plan.Retire {
				if r.Cause == workerpod.Unregistered {
					unregistered++
				}
			}
			if unregistered > in.MaxUnavailable || lost && unregistered > 0 {
				t.Fatalf("%d are made anew of %d missing ones of %d, lost %t", unregistered, gone, size, lost)
			}
			// Somebody deletes a pod, which comes back and registers, or a record comes back by itself.
			if i := rapid.IntRange(0, size-1).Draw(t, "back"); in.Pods[i].Registered == node.No {
				in.Pods[i].Registered = rapid.SampledFrom([]node.Answer{node.Yes, node.No}).Draw(t, "registered")
			}
			if rapid.Bool().Draw(t, "others come back") {
				for i := range in.Others {
					in.Others[i].Registered = node.Yes
				}
			}
			in.Now = in.Now.Add(time.Minute)
			in.SnapshotTime = in.Now
			if plan.Relist || rapid.Bool().Draw(t, "something changed") {
				in.NodeListTime = in.Now
			}
		}
	})
}

func TestWhichOrphanedNodesAreDeleted(t *testing.T) {
	states := map[node.Answer][]string{node.Yes: {"DOWN", "NOT_RESPONDING"}, node.No: {"IDLE"}, node.Unknown: {"DOWN", "INVALID"}}
	record := func(name, kubeNode string, dead node.Answer) nodesetplan.OrphanedNode {
		return nodesetplan.OrphanedNode{Name: name, State: node.Parse(states[dead]), Comment: node.Comment{Namespace: "ns", PodName: "w-" + name, Node: kubeNode, NodeSetName: "w", NodeSetUID: "u"}}
	}
	other := record("f", "gone", node.Yes)
	other.Comment.NodeSetUID = "another"
	in := nodesetplan.Input{Daemon: true, Nodes: kube(nodesetplan.Starts, nodesetplan.Starts), Pods: []workerpod.Pod{on("c")}}
	in.Nodes[1].Hostname = "renamed"
	reserved := record("i", "gone", node.Yes)
	reserved.State = node.Parse([]string{"DOWN", "NOT_RESPONDING", "RESERVED"})
	got := nodesetplan.OrphanedNodesToDelete([]nodesetplan.OrphanedNode{
		reserved,                          // Slurm would refuse it, and all others with it
		record("e", "gone", node.Yes),     // its Kubernetes node is gone
		record("b", "b", node.Yes),        // its Kubernetes node has another host name
		record("a", "a", node.Yes),        // its Kubernetes node is there
		record("c", "gone", node.Yes),     // it has a pod
		record("d", "gone", node.No),      // it lives
		record("g", "gone", node.Unknown), // nobody knows
		record("h", "", node.Yes), other,  // it was somebody else's
	}, "w", "u", in)
	if diff := cmp.Diff([]string{"b", "e"}, got); diff != "" {
		t.Error(diff)
	}
	// A machine may have its long name as host name, or one that no other has.
	in.HostNetwork = true
	got = nodesetplan.OrphanedNodesToDelete([]nodesetplan.OrphanedNode{record("a.example.org", "a", node.Yes), record("e.example.org", "gone", node.Yes)}, "w", "u", in)
	if diff := cmp.Diff([]string{"e.example.org"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestWhichNodesOfANodeSetThatGoesAreDeleted(t *testing.T) {
	record := func(name, reason string, states ...string) nodesetplan.OrphanedNode {
		return nodesetplan.OrphanedNode{
			Name: name, State: node.Parse(states), Reason: node.Reason{Text: reason},
			Comment: node.Comment{Namespace: "ns", PodName: name, NodeSetName: "w", NodeSetUID: "u"},
		}
	}
	ours := node.OurReason("Pod is gone")
	another, reserved, namesake := record("w-7", ours, "IDLE", "DRAIN"), record("w-8", ours, "IDLE", "DRAIN"), record("x-0", ours, "IDLE", "DRAIN")
	another.Comment.NodeSetUID, reserved.Reserved, namesake.Comment.NodeSetName = "another", true, "x"
	got := nodesetplan.DepartedNodesToDelete([]nodesetplan.OrphanedNode{
		record("w-10", ours, "IDLE", "DRAIN"),               // nothing is there
		record("w-2", "Not responding", "DOWN"),             // Slurm has given it up
		record("w-1", ours, "IDLE", "DRAIN"),                // it has a pod
		record("w-3", ours, "MIXED", "DRAIN"),               // it has a job
		record("w-4", ours, "IDLE", "COMPLETING", "DRAIN"),  // a job has not let go of it
		record("w-5", ours, "IDLE", "DRAIN", "HIBERNATING"), // nobody knows what that means
		record("w-6", "broken fan", "IDLE", "DRAIN"),        // an administrator has drained it
		record("w-9", ours, "IDLE", "DRAIN", "MAINTENANCE"), // Slurm would refuse it, and all others with it
		another, reserved, namesake, // they are somebody else's
	}, "w", "u", func(pod string) bool { return pod == "w-1" })
	if diff := cmp.Diff([]string{"w-2", "w-10"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestWhichOrphanedNodesAreDrained(t *testing.T) {
	states := map[node.Answer][]string{node.Yes: {"IDLE"}, node.No: {"IDLE", "DRAIN"}, node.Unknown: {"IDLE", "INVALID"}}
	record := func(name, set, pod string, open node.Answer) nodesetplan.OrphanedNode {
		return nodesetplan.OrphanedNode{Name: name, State: node.Parse(states[open]), Comment: node.Comment{Namespace: "ns", PodName: pod, NodeSetName: set}}
	}
	got := nodesetplan.OrphanedNodesToDrain([]nodesetplan.OrphanedNode{
		record("w-10", "w", "w-10", node.Yes), // it takes jobs and has no pod
		record("w-2", "w", "w-2", node.Yes),
		record("w-1", "w", "w-1", node.Yes),     // it has a pod
		record("w-3", "w", "w-3", node.No),      // it takes no jobs
		record("w-4", "w", "w-4", node.Unknown), // nobody knows
		record("x-0", "x", "x-0", node.Yes),     // it was somebody else's
		record("w-5", "w", "", node.Yes),        // nobody knows whose it was
	}, "w", func(pod string) bool { return pod == "w-1" })
	if diff := cmp.Diff([]string{"w-2", "w-10"}, got); diff != "" {
		t.Error(diff)
	}
}
