// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package workerplan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/controller/worker/workerplan"
	"github.com/coxswain-hpc/coxswain/internal/health"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

const (
	lowMemory = "Low RealMemory (reported:500 < 100.00% of configured:600)"
	gpuCheck  = "[node_problem] gpu_health_check: XID 79"
)

var (
	machine1 = workerpod.Machine{Node: "node-1", UID: "uid-1", System: "s1"}
	machine2 = workerpod.Machine{Node: "node-2", UID: "uid-2", System: "s2"}
)

// drained returns a worker that is drained by somebody, half an hour after its pod was made; Slurm's clock is an hour ahead.
func drained(by, reason string, options ...func(*workerplan.Worker)) workerplan.Worker {
	return registered(func(w *workerplan.Worker) {
		at := noon.Add(-30 * time.Minute)
		w.State = node.Parse([]string{"IDLE", "DRAIN"})
		w.Reason = node.Reason{Text: reason, SetBy: by, At: at}
		w.Record.Drained = node.Reason{Text: reason, SetBy: by, At: at.Add(time.Hour)}
		w.Host.Machine, w.Held = machine1, node.No
		for _, o := range options {
			o(w)
		}
	})
}

func state(words string) func(*workerplan.Worker) {
	return func(w *workerplan.Worker) { w.State = node.Parse(strings.Fields(words)) }
}

// notedOn notes the present drain and its machine in the comment of a worker.
func notedOn(m workerpod.Machine) func(*workerplan.Worker) {
	return func(w *workerplan.Worker) { w.Record.Comment = w.Comment.Noting(w.Record.Drained, m.String()).String() }
}

func startedSince(w *workerplan.Worker) { w.Record.StartedSince = true }

func on(m workerpod.Machine) func(*workerplan.Worker) {
	return func(w *workerplan.Worker) { w.Host.Machine = m }
}

// silent lets the slurmd of a worker fall silent after the drain was noted.
func silent(w *workerplan.Worker) {
	w.Reason.Text += " : Not responding"
	w.Record.Drained = node.Reason{Text: w.Reason.Text, SetBy: "slurm", At: w.Record.Drained.At.Add(time.Minute)}
	w.Reason.SetBy = "slurm"
}

func TestWhichDrainsOfOthersEnd(t *testing.T) {
	const invalid = "IDLE DRAIN INVALID_REG"
	registration := "slurmctld drained it because of its registration (" + lowMemory + "), and slurmd has since started again and registered without a problem"
	check := "a check had drained it on another machine (" + gpuCheck + ")"
	cordon := func(w *workerplan.Worker) { w.Host.Cordoned = node.Yes }
	with := func(edit func(*workerplan.Worker)) func(*workerplan.Worker) { return edit }
	for _, tt := range []struct {
		name string
		w    workerplan.Worker
		want string
	}{
		{"a drain for a registration ends when another slurmd has registered well", drained("slurm", lowMemory, notedOn(workerpod.Machine{}), startedSince), registration},
		{"a drain for a registration ends when another slurmd has registered well, also when the node was silent in between", drained("slurm", lowMemory, notedOn(workerpod.Machine{}), silent, startedSince), strings.Replace(registration, lowMemory, lowMemory+" : Not responding", 1)},
		{"a drain for a registration stays while slurmd offers too little", drained("slurm", lowMemory, notedOn(workerpod.Machine{}), startedSince, state(invalid)), ""},
		{"a drain for a registration stays while the slurmd is the one that it was about", drained("slurm", lowMemory, notedOn(workerpod.Machine{})), ""},
		{"a drain for a registration that nobody has noted stays", drained("slurm", lowMemory, startedSince), ""},
		{"a drain for a registration that was set since stays", drained("slurm", lowMemory, notedOn(workerpod.Machine{}), startedSince, with(func(w *workerplan.Worker) { w.Record.Drained.At = w.Record.Drained.At.Add(time.Second) })), ""},
		{"a drain that a person has set with the words of slurmctld stays", drained("root", lowMemory, notedOn(workerpod.Machine{}), startedSince), ""},
		{"a drain of a person stays", drained("root", "bad disk", notedOn(workerpod.Machine{}), startedSince), ""},
		{"a drain for a registration stays while the node is silent", drained("slurm", lowMemory, notedOn(workerpod.Machine{}), startedSince, state("IDLE DRAIN NOT_RESPONDING")), ""},
		{"a drain for a registration stays while the node is down", drained("slurm", lowMemory, notedOn(workerpod.Machine{}), startedSince, state("DOWN DRAIN")), ""},
		{"a drain for a registration stays until the pod is ready", drained("slurm", lowMemory, notedOn(workerpod.Machine{}), startedSince, with(func(w *workerplan.Worker) { w.Pod.Ready = false })), ""},
		{"a drain for a registration stays while the Kubernetes node is cordoned", drained("slurm", lowMemory, notedOn(workerpod.Machine{}), startedSince, cordon), ""},
		{"a drain for a registration stays while the machine is to be replaced", drained("slurm", lowMemory, notedOn(workerpod.Machine{}), startedSince, with(func(w *workerplan.Worker) { w.Host.Maintenance = health.Maintenance{Type: "M"} })), ""},
		{"a drain for a registration stays when the worker is to go", drained("slurm", lowMemory, notedOn(workerpod.Machine{}), startedSince, with(func(w *workerplan.Worker) { w.Pod.Retired = workerpod.ScaleIn })), ""},

		{"a drain of a check ends on another machine", drained("root", gpuCheck, notedOn(machine1), on(machine2)), check},
		{"a drain of a check ends on another machine, also when the first one was silent at its end", drained("root", gpuCheck, notedOn(machine1), silent, on(machine2)), strings.Replace(check, gpuCheck, gpuCheck+" : Not responding", 1)},
		{"a drain of a check ends when the Kubernetes node of the same name is another one", drained("root", gpuCheck, notedOn(machine1), on(workerpod.Machine{Node: "node-1", UID: "uid-3", System: "s3"})), check},
		{"a drain of a check stays on the same machine", drained("root", gpuCheck, notedOn(machine1), startedSince), ""},
		{"a drain of a check stays when only the Node of its machine was made anew", drained("root", gpuCheck, notedOn(machine1), on(workerpod.Machine{Node: "node-1", UID: "uid-3", System: "s1"})), ""},
		{"a drain of a check stays on a machine of which nothing is known", drained("root", gpuCheck, notedOn(machine1), on(workerpod.Machine{})), ""},
		{"a drain of a check stays when it is not known on which machine it was", drained("root", gpuCheck, notedOn(workerpod.Machine{}), on(machine2)), ""},
		{"a drain of a check stays when it is another one than was noted", drained("root", gpuCheck, notedOn(machine1), on(machine2), with(func(w *workerplan.Worker) { w.Record.Drained.Text = "bad disk" })), ""},
		{"a drain of a check stays while the Kubernetes node is cordoned", drained("root", gpuCheck, notedOn(machine1), on(machine2), cordon), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := workerplan.Next(tt.w)
			if got.StateChange.EndDrain != tt.want || got.StateChange.Undrain || got.StateChange.Revive || got.Announce != (tt.want != "") {
				t.Errorf("%+v, announced %t; want the drain to end because %q", got.StateChange, got.Announce, tt.want)
			}
		})
	}
}

func TestWhichDrainsOfOthersAreNoted(t *testing.T) {
	const invalid = "IDLE DRAIN INVALID_REG"
	held := func(is node.Answer) func(*workerplan.Worker) { return func(w *workerplan.Worker) { w.Held = is } }
	older := func(w *workerplan.Worker) { w.Reason.At = w.Pod.Created.Add(-time.Second) }
	for _, tt := range []struct {
		name    string
		w       workerplan.Worker
		reason  string
		machine string
	}{
		{"a drain of slurmctld for a registration is noted", drained("slurm", lowMemory, state(invalid)), lowMemory, ""},
		{"a drain for a registration is not noted where it has taken the place of the reason of somebody who had drained the node before", drained("slurm", lowMemory, state(invalid), held(node.Yes)), "", ""},
		{"a drain for a registration is not noted where it is not known whether the node was drained before", drained("slurm", lowMemory, state(invalid), held(node.Unknown)), "", ""},
		{"a drain for a registration is not noted when the registration is good again", drained("slurm", lowMemory), "", ""},
		{"a drain of a person in the words of slurmctld is not noted", drained("root", lowMemory, state(invalid)), "", ""},
		{"a drain of a person is not noted", drained("root", "bad disk"), "", ""},
		{"a drain of a check is noted with the machine", drained("root", gpuCheck), gpuCheck, "node-1/uid-1/s1"},
		{"a drain of a check that is older than the pod is not noted", drained("root", gpuCheck, older), "", ""},
		{"a drain of a check is not noted when slurmctld has put its own words behind it since", drained("root", gpuCheck, silent), "", ""},
		{"a drain of a check is not noted on a machine of which nothing is known", drained("root", gpuCheck, on(workerpod.Machine{})), "", ""},
		{"a drain of ours is not noted", drained("slurm", "slurm-operator: Node was cordoned"), "", ""},
		{"the first note of a drain counts", drained("root", gpuCheck, notedOn(machine2)), gpuCheck, "node-2/uid-2/s2"},
		{"the first note counts only as long as the drain is the one that was noted", drained("root", gpuCheck, notedOn(machine2), func(w *workerplan.Worker) { w.Record.Drained.At = noon }), gpuCheck, "node-1/uid-1/s1"},
		{"a note goes when the drain is over", drained("root", gpuCheck, notedOn(machine2), state("IDLE")), "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := tt.w.Record.Comment
			if change := workerplan.Next(tt.w).Record.Comment; change != nil {
				text = *change
			}
			got, _ := node.ParseComment(text)
			if got.DrainedFor != tt.reason || got.DrainedOn != tt.machine || got.PodName != "w-1" {
				t.Errorf("the comment is %s", text)
			}
		})
	}
}

// slurmctld writes its reason over the one of somebody else's drain, which cannot be seen afterwards.
func TestWhoHeldTheNodeBeforeSlurmctldDrainedIt(t *testing.T) {
	const invalid = "IDLE DRAIN INVALID_REG"
	absent := registered(func(w *workerplan.Worker) { w.Registered, w.State = node.No, node.State{} })
	free := registered()
	person, theirs := drained("root", "bad disk"), drained("slurm", lowMemory, state(invalid))
	noted := drained("slurm", lowMemory, state(invalid), notedOn(workerpod.Machine{}))
	unheard := registered(func(w *workerplan.Worker) { w.Registered = node.Unknown })
	for _, tt := range []struct {
		name string
		seen []workerplan.Worker
		want node.Answer
	}{
		{"nobody held a record that was just made", []workerplan.Worker{absent, theirs, theirs}, node.No},
		{"nobody held a node that was free", []workerplan.Worker{free, theirs}, node.No},
		{"a person held the node", []workerplan.Worker{free, person, theirs, unheard, theirs}, node.Yes},
		{"nobody knows who held a node that is seen for the first time", []workerplan.Worker{theirs, theirs}, node.Unknown},
		{"nobody held the node when its drain was noted once", []workerplan.Worker{noted, theirs}, node.No},
		{"somebody held the node when the words are left over and slurmd offers enough", []workerplan.Worker{free, drained("slurm", lowMemory)}, node.Yes},
		{"somebody who set the node down held it", []workerplan.Worker{drained("root", "psu", state("DOWN")), theirs}, node.Yes},
		{"we do not count as somebody who held the node", []workerplan.Worker{drained("slurm", "slurm-operator: Pod is terminating", state("DOWN")), theirs}, node.No},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := node.Unknown
			for _, w := range tt.seen {
				got = w.HeldSince(got)
			}
			if got != tt.want {
				t.Errorf("somebody else: %s, want %s", got, tt.want)
			}
		})
	}
}

func TestMachinesDiffer(t *testing.T) {
	m := workerpod.Machine{Node: "n", UID: "u", System: "s"}
	for _, tt := range []struct {
		name  string
		other workerpod.Machine
		want  node.Answer
	}{
		{"a machine does not differ from itself", m, node.No},
		{"a machine does not differ when its firmware tells nothing now", workerpod.Machine{Node: "n", UID: "u"}, node.No},
		{"a machine differs when it was exchanged below its Node", workerpod.Machine{Node: "n", UID: "u", System: "t"}, node.Yes},
		{"a machine differs when its Node has another name", workerpod.Machine{Node: "o", UID: "v", System: "s"}, node.Yes},
		{"a machine differs when its Node is another one of the same name", workerpod.Machine{Node: "n", UID: "v"}, node.Yes},
		{"a machine does not differ when it has another Node", workerpod.Machine{Node: "n", UID: "v", System: "s"}, node.No},
		{"nobody knows whether a machine differs from an unknown one", workerpod.Machine{}, node.Unknown},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := workerpod.ParseMachine(m.String()).Differs(workerpod.ParseMachine(tt.other.String())); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
	for _, text := range []string{"", "n", "n//s", "n/u"} {
		if got := workerpod.ParseMachine(text); got != (workerpod.Machine{}) {
			t.Errorf("%q is %+v", text, got)
		}
	}
}

func TestWhatIsSaidOfDrainsThatEndByThemselves(t *testing.T) {
	for _, tt := range []struct {
		name         string
		w            workerplan.Worker
		reason, text string
	}{
		{"for a registration", drained("slurm", lowMemory, notedOn(workerpod.Machine{})), "Returning", "it is undrained when slurmd has been restarted, the pod is ready and there is no other reason for the drain"},
		{"of a check", drained("root", gpuCheck, notedOn(machine1)), "FailedCheck", "state=resume; the drain concerns the machine of Kubernetes node node-1, and ends when the worker is ready on another one"},
		{"of a check on nobody knows which machine", drained("root", gpuCheck, on(workerpod.Machine{})), "FailedCheck", "state=resume"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := workerplan.Next(tt.w).Shown.OutOfService; got.Reason != tt.reason || !strings.HasSuffix(got.Message, tt.text) {
				t.Errorf("%+v", got)
			}
		})
	}
}
