// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

// nodeA is node a of the scenarios, with an edit.
func nodeA(edits ...func(*fake.Node)) fake.Node {
	n := fake.Node{Name: "a", CPUs: 4, RealMemory: 1000, Machine: fake.Machine{RealMemory: 20000}}
	for _, edit := range edits {
		edit(&n)
	}
	return n
}

func cpus(n int) func(*fake.Node) { return func(f *fake.Node) { f.CPUs = n } }

func memory(mib int64) func(*fake.Node) { return func(f *fake.Node) { f.RealMemory = mib } }

// gpus are GPUs of which slurmd finds none.
func gpus(n int) func(*fake.Node) {
	return func(f *fake.Node) { f.Gres, f.Machine.Gres = fmt.Sprintf("gpu:%d", n), "none" }
}

// creates makes a node without a slurmd.
func creates(s *system) string {
	return s.refused(s.client.CreateNode(s.t.Context(), "NodeName=d CPUs=4 RealMemory=1000 State=EXTERNAL"))
}

func registers(nodes ...fake.Node) func(*system) string {
	return func(s *system) string { s.Register(nodes...); return "" }
}

// state sets the state of node a.
func state(state, reason string) func(*system) string {
	return func(s *system) string { return s.update("a", rest.NodeUpdate{State: state, Reason: reason}) }
}

// deletesA deletes node a.
func deletesA(s *system) string { return refusal(s.client.DeleteNodes(s.t.Context(), "a")) }

func submits(spec fake.Job) func(*system) string {
	return func(s *system) string { return fmt.Sprintf("job %d", s.Submit(spec)) }
}

func job(verb func(driver, int64), id int64) func(*system) string {
	return func(s *system) string { verb(s, id); return "" }
}

// gang are partitions of which the higher one suspends the jobs of the lower one.
const gang = `PreemptMode=SUSPEND,GANG
PreemptType=preempt/partition_prio
PartitionName=low Nodes=ALL PriorityTier=1 OverSubscribe=FORCE:1
PartitionName=high Nodes=ALL PriorityTier=10 OverSubscribe=FORCE:1
`

func scenarios() []scenario {
	return []scenario{
		losing(), outliving(), drainedAtFirst(), answering(), powering(), resuming(), clouding(), asking(), timingOut(), forgetting(), // first, since they take longest
		{name: "drains", steps: []step{
			{"register", registers(nodeA())},
			{"drain with a reason", state("DRAIN", "disk")},
			{"drain with another", state("DRAIN", "fan")},
			{"drain without", state("DRAIN", "")},
			{"undrain", state("UNDRAIN", "")},
			{"undrain again", state("UNDRAIN", "")},
			{"resume what is idle", state("RESUME", "")},
			{"drain without a reason", state("DRAIN", "")},
			{"resume", state("RESUME", "")},
			{"drain", state("DRAIN", "disk")},
			{"idle", state("IDLE", "")},
			{"reason alone", state("", "fan")},
			{"fail", state("FAIL", "old")},
			{"resume what fails", state("RESUME", "")},
			{"a state that cannot be set", state("ALLOCATED", "")},
			{"drain what fails", func(s *system) string { return state("FAIL", "old")(s) + state("DRAIN", "disk")(s) }},
			{"undrain what fails", state("UNDRAIN", "")},
			{"idle what fails", state("IDLE", "")},
		}},
		{name: "slurmds that read their configuration again", steps: []step{
			{"register", registers(nodeA())},
			{"reconfigure", startsAnew("a", time.Minute, reconfigures)},
			{"slurmctld restarts", startsAnew("a", 5*time.Second, restarts(true))},
		}},
		{name: "suspended jobs", steps: []step{
			{"register", registers(nodeA())},
			{"submit", submits(fake.Job{Nodes: 1})},
			{"suspend", job((driver).Suspend, 1)},
			{"drain", state("DRAIN", "disk")},
			{"resume", job((driver).Resume, 1)},
			{"suspend again", job((driver).Suspend, 1)},
			{"undrain", state("UNDRAIN", "")},
			{"submit another", submits(fake.Job{Nodes: 1})},
			{"cancel the other", job((driver).Cancel, 2)},
			{"slurmd restarts", registers(nodeA())},
			{"slurmctld restarts", restarts(true)},
			{"reconfigure", reconfigures},
			{"resume", job((driver).Resume, 1)},
			{"finish", job((driver).Finish, 1)},
			{"submit a third", submits(fake.Job{Nodes: 1})},
			{"suspend it", job((driver).Suspend, 3)},
			{"requeue it", job((driver).Requeue, 3)},
			{"cancel it", job((driver).Cancel, 3)},
			{"submit a fourth", submits(fake.Job{Nodes: 1})},
			{"suspend it", job((driver).Suspend, 4)},
			{"cancel it", job((driver).Cancel, 4)},
			{"submit a fifth", submits(fake.Job{Nodes: 1})},
			{"suspend it", job((driver).Suspend, 5)},
			{"delete the node", deletesA},
		}},
		{name: "suspended jobs with memory", memory: true, steps: []step{
			{"register", registers(nodeA())},
			{"submit", submits(fake.Job{Nodes: 1})},
			{"suspend", job((driver).Suspend, 1)},
			{"drain", state("DRAIN", "disk")},
			{"resume", job((driver).Resume, 1)},
			{"suspend again", job((driver).Suspend, 1)},
			{"delete the node", deletesA},
		}},
		{name: "preemption by suspension", conf: gang, steps: []step{
			{"register", registers(nodeA())},
			{"submit", submits(fake.Job{Nodes: 1, Partition: "low"})},
			{"preempt it", submits(fake.Job{Nodes: 1, Partition: "high", Preempts: true})},
			{"drain", state("DRAIN", "disk")},
			{"delete the node", deletesA},
			{"cancel the preemptor", job((driver).Cancel, 2)},
			{"undrain", state("UNDRAIN", "")},
			{"preempt it again", submits(fake.Job{Nodes: 1, Partition: "high", Preempts: true})},
			{"cancel the preempted", job((driver).Cancel, 1)},
		}},
		{name: "registrations", steps: []step{
			{"register", registers(nodeA(func(n *fake.Node) {
				n.Weight, n.Features, n.InstanceID, n.InstanceType, n.Extra, n.CoreSpecCount, n.MemSpecLimit = 5, []string{"f"}, "i1", "t1", "e1", 1, 100
			}))},
			{"register with other words", registers(nodeA(func(n *fake.Node) {
				n.Weight, n.Features, n.InstanceID, n.Extra, n.RealMemory, n.MemSpecLimit = 9, []string{"g"}, "i2", "e2", 400, 200
			}))},
			{"register with fewer CPUs", registers(nodeA(cpus(2)))},
			{"undrain what is invalid", state("UNDRAIN", "")},
			{"register with enough", registers(nodeA())},
			{"undrain", state("UNDRAIN", "")},
			{"register with more", registers(nodeA(cpus(8)))},
			{"drain", state("DRAIN", "disk")},
			{"register with fewer CPUs although drained", registers(nodeA(cpus(2)))},
			{"drain what is invalid", state("DRAIN", "mine")},
			{"down what is invalid", state("DOWN", "mine too")},
			{"resume what is invalid", state("RESUME", "")},
			{"register with enough although down", registers(nodeA())},
			{"resume", state("RESUME", "")},
			{"delete", deletesA},
			{"register anew", registers(nodeA(cpus(2)))},
			{"register with more memory than there is", registers(named("b", memory(1_000_000)))},
			{"undrain it", updates("b", rest.NodeUpdate{State: "UNDRAIN"})},
			{"delete it", deletes("b")},
			{"register it with what there is", registers(named("b"))},
			{"register with GPUs that are not there", registers(named("c", gpus(2)))},
			{"create by REST", creates},
			{"create it again", creates},
			{"delete it", deletes("d")},
		}},
		describing(), leaving(), listing(), missing(), restarting(), working(), reserving(), submitting(),
	}
}
