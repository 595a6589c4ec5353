// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/coxswain-hpc/coxswain/internal/health"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// ago is so long before noon.
func ago(d time.Duration) time.Time { return noon.Add(-d) }

// aWorker returns a worker whose pod is a day old, as Slurm shows it for five minutes.
func aWorker(name, state, reason string) health.Worker {
	return health.Worker{
		Slurm: name, Created: ago(24 * time.Hour), Known: node.Yes, State: node.Parse(strings.Fields(state)), Jobless: node.Yes,
		Reason: node.Reason{Text: reason, At: ago(5 * time.Minute)},
	}
}

func aCondition(status corev1.ConditionStatus, reason string, since time.Duration) health.Condition {
	return health.Condition{Status: status, Reason: reason, Since: ago(since)}
}

// what a step does, in short.
func short(s health.Step) string {
	var out []string
	for _, c := range []struct {
		name string
		to   *health.Condition
	}{
		{"degraded", s.Degraded}, {"reboot", s.Reboot}, {"maintained", s.Maintained}, {"drain", s.Drain}, {"not ready", s.NotReady}, {"suspected", s.Suspected},
	} {
		if c.to != nil {
			out = append(out, c.name+" "+string(c.to.Status)+"/"+c.to.Reason)
		}
	}
	if s.Delete {
		out = append(out, "delete")
	}
	if s.Event.Reason != "" {
		out = append(out, "event "+s.Event.Reason)
	}
	if !s.Again.IsZero() {
		out = append(out, "again in "+s.Again.Sub(noon).String())
	}
	return strings.Join(out, ", ")
}

var forReboot, afterKill = node.RebootReason, node.RebootAfterKillTask()

// TestWhatIsWrittenAboutADegradedNode goes through docs/contributors/predecessors/soperator-health.md#reboot-of-a-machine.
func TestWhatIsWrittenAboutADegradedNode(t *testing.T) {
	const yes, no, unknown = corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown
	killed, busy := aWorker("w-0", "MIXED DRAIN", "Kill task failed"), aWorker("w-1", "ALLOCATED", "")
	drains := aWorker("w-1", "ALLOCATED DRAIN", forReboot)
	drained := []health.Worker{aWorker("w-0", "IDLE DRAIN", afterKill), aWorker("w-1", "IDLE DRAIN", forReboot)}
	moved := killed
	moved.Created = ago(time.Minute)
	movedAfter := moved
	movedAfter.Reason.Text = afterKill
	protected, silent, absent := drained[1], drained[1], drained[1]
	protected.Protected, silent.Known, silent.State = true, node.Unknown, node.State{}
	absent.Known, absent.State, absent.Jobless = node.No, node.State{}, node.Unknown
	suspended, unasked := drained[1], drained[1]
	suspended.Jobless, unasked.Jobless = node.No, node.Unknown
	foreign, foreignBusy := killed, drains
	foreignDrained := aWorker("w-2", "IDLE DRAIN", "Kill task failed")
	foreign.Foreign, foreignBusy.Foreign, foreignDrained.Foreign = true, true, true
	ready := health.Rebooter{Exists: true, Ready: ago(time.Hour)}
	degraded, asked := aCondition(yes, "SlurmNodeDegraded", time.Minute), aCondition(yes, "NodeNeedReboot", time.Minute)
	for _, tt := range []struct {
		name string
		node health.Node
		want string
	}{
		{"a node in service is left alone", health.Node{Workers: []health.Worker{busy}, Rebooter: ready}, ""},
		{"a drain of a person is no reason to reboot", health.Node{Workers: []health.Worker{aWorker("w-0", "IDLE DRAIN", "bad disk")}, Rebooter: ready}, ""},
		{"a reason that is left over on a node that does not drain is none", health.Node{Workers: []health.Worker{aWorker("w-0", "IDLE", "Kill task failed")}, Rebooter: ready}, ""},
		{"Kill task failed makes a node degraded", health.Node{Workers: []health.Worker{busy, killed}, Rebooter: ready}, "degraded True/SlurmNodeDegraded, event SlurmNodeDegraded"},
		{"Kill task failed makes a node degraded, whatever slurmctld has appended", health.Node{Workers: []health.Worker{aWorker("w-0", "DOWN DRAIN NOT_RESPONDING", "Kill task failed : Not responding")}, Rebooter: ready}, "degraded True/SlurmNodeDegraded, event SlurmNodeDegraded"},
		{"a node is degraded again after a reboot before it", health.Node{Workers: []health.Worker{killed}, Rebooter: ready, Degraded: aCondition(no, "NodeRebooted", time.Hour)}, "degraded True/SlurmNodeDegraded, event SlurmNodeDegraded"},
		{"a node is not degraded by what is older than the last reboot", health.Node{Workers: []health.Worker{killed}, Rebooter: ready, Degraded: aCondition(no, "NodeRebooted", time.Minute)}, ""},
		{"a node is not degraded when somebody has taken a reboot for it back", health.Node{Workers: []health.Worker{killed}, Rebooter: ready, Degraded: aCondition(no, "NodeNoRebootNeeded", time.Minute)}, ""},
		{"a node is degraded again when only the rebooter was missing", health.Node{Workers: []health.Worker{killed}, Rebooter: ready, Degraded: aCondition(no, "NoRebooter", time.Minute)}, "degraded True/SlurmNodeDegraded, event SlurmNodeDegraded"},
		{"a node is not degraded for a pod that brought the drain along from another machine", health.Node{Workers: []health.Worker{moved}, Rebooter: ready}, ""},
		{"a node that nobody could reboot is degraded again for a pod that it had then", health.Node{Workers: []health.Worker{movedAfter}, Rebooter: ready, Degraded: aCondition(no, "NoRebooter", 3*time.Minute)}, "degraded True/SlurmNodeDegraded, event SlurmNodeDegraded"},
		{"a node is not degraded for a worker for which no machine may be rebooted", health.Node{Workers: []health.Worker{busy, foreign}, Rebooter: ready}, ""},
		{"a node is not degraded where no rebooter is", health.Node{Workers: []health.Worker{killed}}, ""},
		{"a node is not degraded where the rebooter is not ready", health.Node{Workers: []health.Worker{killed}, Rebooter: health.Rebooter{Exists: true}}, ""},
		{"a node is not degraded where the rebooter has just become ready, since it may end at once", health.Node{Workers: []health.Worker{killed}, Rebooter: health.Rebooter{Exists: true, Ready: ago(4 * time.Second)}}, "again in 6s"},
		{"a rebooter is taken at its word where the clock of its kubelet is far ahead", health.Node{Workers: []health.Worker{killed}, Rebooter: health.Rebooter{Exists: true, Ready: noon.Add(10 * time.Minute)}}, "degraded True/SlurmNodeDegraded, event SlurmNodeDegraded"},
		{"a node is not degraded while the machine is to be replaced", health.Node{Workers: []health.Worker{killed}, Rebooter: ready, Maintenance: health.Maintenance{Type: "M"}}, ""},
		{"a node is not degraded while another one of a few nodes is", health.Node{Workers: []health.Worker{killed}, Rebooter: ready, Others: health.Others{All: 4, Degraded: 1}}, "event TooManyDegraded"},
		{"a node is degraded while another one of many nodes is", health.Node{Workers: []health.Worker{killed}, Rebooter: ready, Others: health.Others{All: 19, Degraded: 1}}, "degraded True/SlurmNodeDegraded, event SlurmNodeDegraded"},
		{"a node is not degraded while a tenth of many nodes is", health.Node{Workers: []health.Worker{killed}, Rebooter: ready, Others: health.Others{All: 19, Degraded: 2}}, "event TooManyDegraded"},
		{"a node is not degraded while it is being deleted", health.Node{Leaving: true, Workers: []health.Worker{killed}, Rebooter: ready}, ""},
		{"a node is not degraded while it is Unknown what is asked for", health.Node{Workers: []health.Worker{killed}, Rebooter: ready, Reboot: aCondition(unknown, "Lost", time.Hour)}, ""},

		{"a reboot waits for the jobs of the node's workers", health.Node{Workers: []health.Worker{drained[0], drains}, Rebooter: ready, Degraded: degraded}, ""},
		{"a reboot waits for workers that are still protected", health.Node{Workers: []health.Worker{drained[0], protected}, Rebooter: ready, Degraded: degraded}, ""},
		{"a reboot waits for jobs that are suspended", health.Node{Workers: []health.Worker{drained[0], suspended}, Rebooter: ready, Degraded: degraded}, ""},
		{"a reboot waits until Slurm has said that no job is suspended", health.Node{Workers: []health.Worker{drained[0], unasked}, Rebooter: ready, Degraded: degraded}, ""},
		{"a reboot waits until the drain has become ours, which the pod may take to another machine", health.Node{Workers: []health.Worker{aWorker("w-0", "IDLE DRAIN", "Kill task failed"), drained[1]}, Rebooter: ready, Degraded: degraded}, ""},
		{"a reboot waits for the jobs of a worker for which it would not be done", health.Node{Workers: []health.Worker{drained[0], foreignBusy}, Rebooter: ready, Degraded: degraded}, ""},
		{"a reboot does not wait for the drain of a worker for which it would not be done", health.Node{Workers: []health.Worker{drained[0], foreignDrained}, Rebooter: ready, Degraded: degraded}, "degraded True/NodeNeedReboot, reboot True/NodeNeedReboot, event NodeNeedReboot"},
		{"a reboot waits for an answer of Slurm", health.Node{Workers: []health.Worker{drained[0], silent}, Rebooter: ready, Degraded: degraded}, ""},
		{"a reboot does not wait for a worker that Slurm does not have and nobody protects", health.Node{Workers: []health.Worker{drained[0], absent}, Rebooter: ready, Degraded: degraded}, "degraded True/NodeNeedReboot, reboot True/NodeNeedReboot, event NodeNeedReboot"},
		{"a reboot is asked for when all workers are drained", health.Node{Workers: drained, Rebooter: ready, Degraded: degraded}, "degraded True/NodeNeedReboot, reboot True/NodeNeedReboot, event NodeNeedReboot"},
		{"a reboot is asked for while the rebooter is being replaced", health.Node{Workers: drained, Rebooter: health.Rebooter{Exists: true}, Degraded: degraded}, "degraded True/NodeNeedReboot, reboot True/NodeNeedReboot, event NodeNeedReboot"},
		{"a reboot is asked for after an earlier one", health.Node{Workers: drained, Rebooter: ready, Degraded: degraded, Reboot: aCondition(no, "NodeRebooted", time.Hour)}, "degraded True/NodeNeedReboot, reboot True/NodeNeedReboot, event NodeNeedReboot"},
		{"a reboot is asked for when a person has resumed the node meanwhile", health.Node{Workers: []health.Worker{aWorker("w-0", "IDLE DRAIN", forReboot), drained[1]}, Rebooter: ready, Degraded: degraded}, "degraded True/NodeNeedReboot, reboot True/NodeNeedReboot, event NodeNeedReboot"},
		{"a reboot is asked for when no worker is left there", health.Node{Rebooter: ready, Degraded: degraded}, "degraded True/NodeNeedReboot, reboot True/NodeNeedReboot, event NodeNeedReboot"},
		{"a node is not degraded any more when the rebooter is gone", health.Node{Workers: []health.Worker{drained[0], drains}, Degraded: degraded}, "degraded False/NoRebooter, event NoRebooter"},

		{"a rebooter that says nothing is awaited for ten minutes", health.Node{Workers: drained, Rebooter: ready, Degraded: asked, Reboot: asked}, "again in 9m0s"},
		{"a rebooter that says something is awaited for long", health.Node{Workers: drained, Rebooter: ready, Degraded: asked, Reboot: aCondition(yes, "NodeRebooting", time.Hour)}, ""},
		{"a rebooter that says nothing for longer has no rights", health.Node{Workers: drained, Rebooter: ready, Degraded: asked, Reboot: aCondition(yes, "NodeNeedReboot", 10*time.Minute)}, "degraded False/NoRebooter, reboot False/NoRebooter, event NoRebooter"},
		{"a rebooter that is gone reboots nothing", health.Node{Workers: drained, Degraded: asked, Reboot: asked}, "degraded False/NoRebooter, reboot False/NoRebooter, event NoRebooter"},
		{"a machine that goes down takes its rebooter along", health.Node{Workers: drained, Degraded: asked, Reboot: aCondition(yes, "NodeRebooting", time.Minute)}, ""},
		{"a request that somebody has taken back is over", health.Node{Workers: drained, Rebooter: ready, Degraded: asked, Reboot: aCondition(no, "Withdrawn", time.Minute)}, "degraded False/NodeNoRebootNeeded"},
		{"a machine that has been rebooted is back", health.Node{Workers: drained, Rebooter: ready, Degraded: asked, Reboot: aCondition(yes, "NodeRebooted", time.Minute)}, "degraded False/NodeRebooted, reboot False/NodeRebooted, event NodeRebooted"},
		{"a reboot that somebody else has asked for is theirs", health.Node{Workers: []health.Worker{busy}, Rebooter: ready, Reboot: aCondition(yes, "NodeRebooted", time.Minute)}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.node.Now = noon
			if got := short(health.Decide(tt.node)); got != "" {
				t.Errorf("without --reboot-degraded-nodes it does %q", got)
			}
			tt.node.Reboots = true
			got := health.Decide(tt.node)
			if short(got) != tt.want {
				t.Errorf("it does %q, want %q", short(got), tt.want)
			}
			if got.Writes() != (got.Degraded != nil || got.Reboot != nil) {
				t.Error("it does not know that it writes")
			}
		})
	}
}

func TestWhatOfItsConditionsANodeIsWrittenWith(t *testing.T) {
	stored := func(kind string, status corev1.ConditionStatus, reason string) corev1.NodeCondition {
		at := metav1.NewTime(ago(time.Hour))
		return corev1.NodeCondition{Type: corev1.NodeConditionType(kind), Status: status, Reason: reason, LastHeartbeatTime: at, LastTransitionTime: at}
	}
	written := func(kind string, status corev1.ConditionStatus, reason string, since time.Time) corev1.NodeCondition {
		return corev1.NodeCondition{Type: corev1.NodeConditionType(kind), Status: status, Reason: reason, LastHeartbeatTime: metav1.NewTime(noon), LastTransitionTime: metav1.NewTime(since)}
	}
	want := health.Condition{Status: corev1.ConditionTrue, Reason: "NodeNeedReboot"}
	for _, tt := range []struct {
		name string
		has  []corev1.NodeCondition
		step health.Step
		want []corev1.NodeCondition
	}{
		{"conditions of others are not written", []corev1.NodeCondition{stored("Ready", "True", "R")}, health.Step{Degraded: &want}, []corev1.NodeCondition{written("SoperatorChecksNodeDegraded", "True", "NodeNeedReboot", noon)}},
		{
			"a condition that stays is written as it is, or it would vanish", []corev1.NodeCondition{stored("SlurmNodeReboot", "False", "NodeRebooted")}, health.Step{Degraded: &want},
			[]corev1.NodeCondition{written("SoperatorChecksNodeDegraded", "True", "NodeNeedReboot", noon), stored("SlurmNodeReboot", "False", "NodeRebooted")},
		},
		{
			"a status that stays keeps its time", []corev1.NodeCondition{stored("SoperatorChecksNodeDegraded", "True", "SlurmNodeDegraded")}, health.Step{Degraded: &want},
			[]corev1.NodeCondition{written("SoperatorChecksNodeDegraded", "True", "NodeNeedReboot", ago(time.Hour))},
		},
		{
			"what a cloud says of the hardware stays the cloud's", []corev1.NodeCondition{stored("HardwareIssuesSuspected", "False", "Fine")}, health.Step{Reboot: &want},
			[]corev1.NodeCondition{written("SlurmNodeReboot", "True", "NodeNeedReboot", noon)},
		},
		{
			"what a check has said of the hardware stays ours", []corev1.NodeCondition{stored("HardwareIssuesSuspected", "True", "GPUHealthCheckFailedSoperator")}, health.Step{Reboot: &want},
			[]corev1.NodeCondition{written("SlurmNodeReboot", "True", "NodeNeedReboot", noon), stored("HardwareIssuesSuspected", "True", "GPUHealthCheckFailedSoperator")},
		},
		{
			"a request that is made anew begins now", []corev1.NodeCondition{stored("SlurmNodeReboot", "True", "NodeRebooted")}, health.Step{Reboot: &want},
			[]corev1.NodeCondition{written("SlurmNodeReboot", "True", "NodeNeedReboot", noon)},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, tt.step.Written(kubernetesNode(nil, tt.has...), noon)); diff != "" {
				t.Errorf("(-want, +got):\n%s", diff)
			}
		})
	}
}

func TestWhenADrainAfterKillTaskFailedIsOver(t *testing.T) {
	reason := node.Reason{Text: afterKill, At: ago(time.Hour)}
	for _, tt := range []struct {
		name    string
		reboots bool
		has     []corev1.NodeCondition
		want    bool
	}{
		{"the drain is over on another machine, which never was rebooted", true, nil, true},
		{"the drain is over on another machine, which was rebooted long ago", true, []corev1.NodeCondition{since("False", "NodeRebooted", 3*time.Hour)}, true},
		{"the drain is over on another machine, which nobody could reboot long ago", true, []corev1.NodeCondition{since("False", "NoRebooter", 3*time.Hour)}, true},
		{"the drain is not over while the machine is to be rebooted", true, []corev1.NodeCondition{since("True", "NodeNeedReboot", 2*time.Hour)}, false},
		{"the drain is over once the machine has been rebooted", true, []corev1.NodeCondition{since("False", "NodeRebooted", time.Minute)}, true},
		{"the drain is over after a reboot, also when Slurm's clock seems to be ahead", true, []corev1.NodeCondition{since("False", "NodeRebooted", time.Hour+time.Minute)}, true},
		{"the drain is not over when nobody could reboot the machine", true, []corev1.NodeCondition{since("False", "NoRebooter", time.Minute)}, false},
		{"the drain is not over when nobody could reboot the machine and Slurm's clock seems to be ahead", true, []corev1.NodeCondition{since("False", "NoRebooter", time.Hour+time.Minute)}, false},
		{"the drain is not over while nobody knows whether the machine was rebooted", true, []corev1.NodeCondition{since("Unknown", "", time.Minute)}, false},
		{"the drain is never over where nothing is rebooted, since nobody knows which machine it was", false, nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			said := health.Conditions{RebootDegraded: tt.reboots}.RebootOf(kubernetesNode(nil, tt.has...))
			if got := said.Over(reason); got != tt.want {
				t.Errorf("it is %v, by %+v", got, said)
			}
			if said.Over(node.Reason{Text: afterKill}) {
				t.Error("a drain of unknown age is over")
			}
		})
	}
}

func since(status corev1.ConditionStatus, reason string, d time.Duration) corev1.NodeCondition {
	return corev1.NodeCondition{Type: health.NodeDegraded, Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(ago(d))}
}
