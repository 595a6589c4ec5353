// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package statuspage

import (
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/slurm/queue"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// noon returns when the facts of tests are gathered.
func noon() time.Time { return time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC) }

// demo returns the cluster of tests.
func demo() slurmcache.Key { return slurmcache.Key{Namespace: "slurm", Name: "demo"} }

// words returns the states of nodes of an example, one after the other.
func words() [][]string {
	var out [][]string
	for _, group := range []struct {
		n     int
		words []string
	}{
		{4, []string{"IDLE", "DYNAMIC_NORM"}}, {3, []string{"MIXED", "DYNAMIC_NORM"}}, {5, []string{"ALLOCATED", "DYNAMIC_NORM"}},
		{1, []string{"MIXED", "DRAIN", "DYNAMIC_NORM"}}, {1, []string{"IDLE", "DRAIN", "DYNAMIC_NORM"}}, {1, []string{"DOWN", "DYNAMIC_NORM"}},
		{1, []string{"IDLE", "NOT_RESPONDING", "DYNAMIC_NORM"}}, {1, []string{"IDLE", "MAINTENANCE", "DYNAMIC_NORM"}}, {2, []string{"IDLE", "CLOUD", "POWERED_DOWN"}},
		{1, nil},
	} {
		for range group.n {
			out = append(out, group.words)
		}
	}
	return out
}

// example returns a cluster with that many nodes in two NodeSets, in all states. Most are as in a cluster that works.
func example(nodes int) Facts {
	at := metav1.NewTime(noon().Add(-time.Hour))
	condition := func(kind, status, reason, message string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: metav1.ConditionStatus(status), Reason: reason, Message: message, LastTransitionTime: at}
	}
	gpus := nodes / 4
	f := Facts{
		Now: noon(), Cluster: demo(),
		Slurm: Slurm{Connected: true, Trust: slurmcache.Fresh, Since: noon().Add(-3 * time.Hour), Taken: noon().Add(-time.Second), Name: "demo", Release: "26.05.5"},
		Objects: []Object{
			{Kind: "Controller", Name: "demo", Conditions: []metav1.Condition{
				condition("Ready", "True", "Available", ""), condition("Stalled", "False", "Reconciled", ""), condition("SlurmReachable", "True", "Answering", ""),
			}},
			{Kind: "NodeSet", Name: "cpu", Conditions: []metav1.Condition{
				condition("Ready", "False", "PodsNotReady", fmt.Sprintf("%d of %d workers are ready", nodes-gpus-1, nodes-gpus)), condition("Reconciling", "True", "RollingOut", "2 workers are on the way out"),
			}},
		},
	}
	for _, set := range []struct {
		name  string
		nodes int
	}{{"cpu", nodes - gpus}, {"gpu", gpus}} {
		n := NodeSet{Name: set.name}
		n.Status.Desired, n.Status.Replicas, n.Status.ReadyReplicas = int32(set.nodes), int32(set.nodes), int32(set.nodes-1)
		for i := range set.nodes {
			f.Nodes = append(f.Nodes, exampleNode(set.name, i, set.nodes))
		}
		f.NodeSets = append(f.NodeSets, n)
	}
	status := &f.NodeSets[0].Status
	status.Planned = 3
	status.Plan = []slinkyv1beta1.NodeSetStep{
		{Pod: "cpu-12", Action: "Retire", Cause: "update", Message: "job 812 of alice, which ends at 14:20"},
		{Pod: "cpu-4", Action: "Retire", Cause: "update", Message: "cpu-12: at most 1 worker may be unavailable"},
	}
	status.OutOfService = []slinkyv1beta1.NodeSetOutOfService{
		{Reason: "HeldBySomebody", Count: 1, Nodes: "cpu-13", Since: &at}, {Reason: "Retiring", Count: 1, Nodes: "cpu-12", Since: &at},
	}
	return f
}

// exampleQueue returns Slurm's answer about jobs in an example: two wait and three run.
func exampleQueue() Queue {
	return Queue{Taken: noon().Add(-time.Second), Summary: queue.Summary{
		Pending: 14,
		Partitions: []queue.Partition{{
			Name: "main", Pending: 14, Running: 3, Other: 1, Wanted: queue.Resources{Nodes: 26, CPUs: 104, GPUs: 16}, Used: queue.Resources{Nodes: 3, CPUs: 24},
			Oldest: noon().Add(-3 * time.Hour), Reasons: []queue.Reason{{Text: "Resources", Jobs: 12}, {Text: "Priority", Jobs: 1}}, OtherReasons: 1,
		}},
		Waiting: []queue.Job{
			{Label: "812", User: "alice", Partition: "main", State: "PENDING", Reason: "Priority", Wanted: queue.Resources{Nodes: 2, CPUs: 8, GPUs: 16}, Submitted: noon().Add(-3 * time.Hour), Tasks: 1},
			{Label: "813_[1-12%4]", User: "uid 1001", Partition: "main", State: "PENDING", Reason: "Resources", Wanted: queue.Resources{Nodes: 1, CPUs: 1}, Submitted: noon().Add(-5 * time.Minute), Tasks: 12},
		},
	}}
}

// exampleRecords are jobs as the Slurm cache has them.
func exampleRecords() slurmcache.JobRecords {
	job := func(id int64, user, partition, state, reason string, ago time.Duration, tres string) *rest.JobRecord {
		return &rest.JobRecord{ID: id, User: user, Partition: partition, State: []string{state}, Reason: reason, Submitted: noon().Add(-ago), TRES: tres}
	}
	return slurmcache.JobRecords{Taken: noon().Add(-time.Second), Jobs: []*rest.JobRecord{
		job(812, "alice", "cpu", "RUNNING", "None", 5*time.Hour, "cpu=64,mem=256G,node=4,billing=64"),
		job(813, "bob", "gpu", "RUNNING", "None", 4*time.Hour, "cpu=16,mem=200G,node=1,billing=16,gres/gpu=8"),
		job(815, "alice", "gpu", "PENDING", "Resources", 3*time.Hour, "cpu=64,mem=800G,node=4,billing=64,gres/gpu=32"),
		job(816, "carol", "gpu", "PENDING", "Priority", 40*time.Minute, "cpu=16,mem=200G,node=1,billing=16,gres/gpu=8"),
	}}
}

// exampleNode returns a node of a NodeSet with that many. In large ones one of ten is in a state other than idle, mixed and allocated.
func exampleNode(set string, i, of int) Node {
	all := words()
	said := all[i%len(all)]
	if of > 100 && i/len(all)%10 != 0 {
		said = all[i%12]
	}
	n := Node{Name: fmt.Sprintf("%s-%d", set, i), NodeSet: set, State: node.Parse(said), Registered: node.AnswerOf(said != nil)}
	if n.State.Drain() == node.Yes || n.State.Down() == node.Yes {
		n.Reason = node.Reason{Text: "disk <sda> fails", SetBy: "root", At: noon().Add(-time.Hour)}
		n.OutOfService = "HeldBySomebody: root has drained it since 11:00, and undrains it"
	}
	return n
}
