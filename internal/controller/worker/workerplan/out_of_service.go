// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package workerplan

import (
	"cmp"
	"fmt"
	"time"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/health"
	"github.com/coxswain-hpc/coxswain/internal/problem/rule"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// OutOfService is who keeps new jobs from a worker's Slurm node, why, and what brings it back. The zero value is for nobody.
type OutOfService struct {
	// Reason is one of PodConditionOutOfService.
	Reason string
	// Message is who and since when, the reason in Slurm, what is waited for and what comes next.
	Message string
	// Since is when Slurm's reason was set; zero if unknown.
	Since time.Time
}

// outOfService decides by Slurm's state and reason, and by the objects: the result is the same after a restart. The message changes only
// when the state does, so that it costs no write of its own.
//
//nolint:gochecknoglobals // a constant list
var outOfService = rule.List[*facts, OutOfService]{
	Question: "Who keeps new jobs from the node, and what brings it back?",
	Rules: []rule.Rule[*facts, OutOfService]{
		{
			Name: "the node takes jobs, or it is not known whether it does", Does: "nobody", Why: "only what Slurm says is told",
			When: func(f *facts) bool { return f.State.Drain().Or(f.State.Down()) != node.Yes },
		},
		{
			Name: "the worker is to go", Does: "Retiring", Why: "it is drained, and deleted when nothing runs on it",
			When: func(f *facts) bool { return f.situation == retired },
			Then: func(f *facts) OutOfService {
				return f.out(slinkyv1beta1.ReasonRetiring, "the pod is deleted when nothing runs on it, see condition "+string(slinkyv1beta1.PodConditionRetiring))
			},
		},
		{
			Name: "slurmd offers less than the record of the node wants", Does: "InvalidRegistration", Why: "Slurm drains such a node itself",
			When: func(f *facts) bool { return f.State.Has(node.InvalidReg) },
			Then: func(f *facts) OutOfService {
				return f.out(slinkyv1beta1.ReasonInvalidRegistration, "it needs attention, see condition "+string(slinkyv1beta1.PodConditionNeedsAttention))
			},
		},
		{
			Name: "Slurm has given it up", Does: "NotResponding", Why: "it hears nothing of slurmd, and requeues the jobs",
			When: func(f *facts) bool { return node.HeldBy(f.State, f.Reason) == node.Slurm },
			Then: func(f *facts) OutOfService {
				return f.out(slinkyv1beta1.ReasonNotResponding, "it takes jobs again when its slurmd registers (ReturnToService)")
			},
		},
		{
			Name: "Slurm has drained it for a registration, and only for that", Does: "Returning", Why: "slurmd offers enough by now, and Slurm ends no drain",
			When: func(f *facts) bool { return f.drainedForRegistration() },
			Then: func(f *facts) OutOfService {
				return f.out(slinkyv1beta1.ReasonReturning, "it is undrained when slurmd has been restarted, the pod is ready and there is no other reason for the drain")
			},
		},
		{
			Name: "a check has drained it", Does: "FailedCheck", Why: "its reason has the prefix of a check; a check ends only its own drains",
			When: func(f *facts) bool { return f.heldByOthers() && f.Reason.OfCheck() },
			Then: func(f *facts) OutOfService {
				return f.out(slinkyv1beta1.ReasonFailedCheck, "the check undrains it when it passes; to undrain it by hand: "+f.resume()+f.untilExchanged())
			},
		},
		{
			Name: "Slurm has drained it because a process of a job could not be ended", Does: "KillTaskFailed", Why: "a reboot of the machine ends that process",
			When: func(f *facts) bool { return f.heldByOthers() && f.State.Drain() == node.Yes && f.Reason.OfKillTask() },
			Then: func(f *facts) OutOfService {
				return f.out(slinkyv1beta1.ReasonKillTaskFailed, "the machine is rebooted if the operator has --reboot-degraded-nodes; otherwise undrain it by hand: "+f.resume())
			},
		},
		{
			Name: "somebody else has drained it or set it DOWN", Does: "HeldBySomebody", Why: "what a person has said is never undone",
			When: (*facts).heldByOthers,
			Then: func(f *facts) OutOfService {
				return f.out(slinkyv1beta1.ReasonHeldBySomebody, "the operator does not undo this; to return it to service: "+f.resume())
			},
		},
		{
			Name: "its machine is to be rebooted, or that is waited for", Does: "Reboot", Why: "a process of a job on that machine could not be ended",
			When: func(f *facts) bool { return f.Host.Reboot.Wanted || f.Host.Reboot.Unknown || f.awaitsReboot() },
			Then: func(f *facts) OutOfService {
				return f.out(slinkyv1beta1.ReasonReboot, "it is undrained when Kubernetes node "+f.Host.Name+" has been rebooted (condition "+health.NodeDegraded+")")
			},
		},
		{
			Name: "its ephemeral storage is nearly used up", Does: "EphemeralStorage", Why: "nobody has said that enough of it is free again, and no maintenance is announced",
			When: func(f *facts) bool { return f.drainedForStorage() && !f.Host.Maintenance.Announced() },
			Then: func(f *facts) OutOfService {
				return f.out(slinkyv1beta1.ReasonEphemeralStorage, f.untilStorageIsFree())
			},
		},
		{
			Name: "its machine is to be replaced", Does: "Maintenance", Why: "a condition of the Kubernetes node says so",
			When: func(f *facts) bool { return f.Host.Maintenance.Announced() || f.Host.Maintenance.Unknown },
			Then: func(f *facts) OutOfService {
				return f.out(slinkyv1beta1.ReasonMaintenance, "it is undrained when no condition of Kubernetes node "+f.Host.Name+" announces maintenance any more")
			},
		},
		{
			Name: "it is cordoned", Does: "Cordoned", Why: "who cordons a Kubernetes node or a pod wants no new jobs there",
			When: func(f *facts) bool { return f.Host.Cordoned == node.Yes || f.Pod.Cordoned },
			Then: func(f *facts) OutOfService {
				return f.out(slinkyv1beta1.ReasonCordoned, "it is undrained when neither Kubernetes node "+f.Host.Name+" nor the pod is cordoned")
			},
		},
		{
			Name: "nothing is known of its Kubernetes node", Does: "KubernetesNodeUnknown", Why: "a cause may go on there",
			When: func(f *facts) bool { return f.Host.Cordoned == node.Unknown },
			Then: func(f *facts) OutOfService {
				return f.out(slinkyv1beta1.ReasonKubernetesNodeUnknown, "it is undrained when Node "+cmp.Or(f.Host.Name, "of the pod")+" exists and gives no reason for a drain")
			},
		},
		{
			Name: "checks have to pass on its machine first", Does: "WaitsForChecks", Why: "its NodeSet required them when the pod was made, and still does",
			When: func(f *facts) bool { return len(f.Checks) > 0 },
			Then: func(f *facts) OutOfService {
				return f.out(slinkyv1beta1.ReasonWaitsForChecks, "it is undrained when the checks have passed on the machine of Kubernetes node "+f.Host.Name+": "+f.Checks.String())
			},
		},
		{
			Name: "otherwise", Does: "Returning", Why: "the drain is ours, and nobody wants it any more",
			Then: func(f *facts) OutOfService {
				return f.out(slinkyv1beta1.ReasonReturning, "it is used again when the pod is ready and slurmd answers")
			},
		},
	},
}

// heldByOthers reports whether somebody other than us and Slurm has drained the node or set it DOWN.
func (f *facts) heldByOthers() bool { return node.HeldBy(f.State, f.Reason) == node.SomebodyElse }

// untilExchanged returns what else ends the drain of a check, where its machine is known.
func (f *facts) untilExchanged() string {
	note, _ := f.noted()
	if m := workerpod.ParseMachine(note.DrainedOn); m.UID != "" && f.drainedByCheck() {
		return "; the drain concerns the machine of Kubernetes node " + m.Node + ", and ends when the worker is ready on another one"
	}
	return ""
}

// untilStorageIsFree returns what brings a node back that is drained for the ephemeral storage of its pod.
func (f *facts) untilStorageIsFree() string {
	if f.Storage.Resume == 0 {
		return "nothing is known of the pod's ephemeral storage; " + f.resume()
	}
	return fmt.Sprintf("it is undrained when the pod uses less than %v %% of its ephemeral storage", f.Storage.Resume)
}

// resume returns the command by which a person brings the node back.
func (f *facts) resume() string { return "scontrol update nodename=" + f.Slurm + " state=resume" }

// out returns the description of a node that gets no new jobs.
func (f *facts) out(reason, next string) OutOfService {
	how := "drained"
	if f.State.Down() == node.Yes {
		how = "down"
	}
	by := ""
	if f.Reason.SetBy != "" {
		by = " by " + f.Reason.SetBy
	}
	if !f.Reason.At.IsZero() {
		by += " since " + f.Reason.At.UTC().Format(time.RFC3339)
	}
	message := how + by + ": " + cmp.Or(f.Reason.Text, "no reason given")
	if completing, ok := f.completing(); ok {
		message += "; " + completing
	} else if f.State.Busy() == node.Yes {
		message += "; jobs run there to their end"
	}
	return OutOfService{Reason: reason, Message: message + "; " + next, Since: f.Reason.At}
}
