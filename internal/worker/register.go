// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"fmt"
	"time"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/nodeset"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

// registrationTimeout is how long a running worker may need to register, and Slurm's view to show it. A job may start at once.
// As long an absence has to last to be believed: a list may lack a node by mistake.
const registrationTimeout = time.Minute

// lostRecheckInterval is how long to wait for another look when it cannot be told whether Slurm has lost its state.
const lostRecheckInterval = 10 * time.Second

// missing decides about a worker that Slurm, asked just now, does not have.
func missing(w Worker, action *Action) {
	action.Conditions, action.ConditionsKnown, action.Message = nil, true, "the node is not registered"
	if w.Elsewhere != "" {
		elsewhere(w, action)
		return
	}
	starts, gone := w.Pod.Phase == "Pending", false
	switch {
	case starts, w.Pod.Retired == "" && w.Protection == Unprotected, w.Lost == node.Yes && w.DrainTimeout == 0:
		// Nothing hangs on it; or it may have been there a moment ago, with jobs of which Slurm knows nothing any more.
	case !w.Settled(): // it is not enough that the time is over: Slurm must have listed its nodes since then
		action.until(w.settled(), w)
	case w.Lost == node.No:
		gone = true
	case w.DrainTimeout == 0:
		action.wake(w.Now.Add(lostRecheckInterval))
	case w.Listed.Before(w.timeout()):
		action.until(w.timeout(), w)
	default:
		gone = true
	}
	switch {
	case gone && !starts && w.Protection != Unprotected:
		action.Protected = node.No
	case w.Protection == UntilDrained: // one that starts may be evicted in any case, and is to be protected when it has
		action.Protected = node.Yes
	}
	switch {
	case w.Pod.Retired == "": // Make decides whether it is made anew
	case starts, gone:
		unregister(w, action)
	case w.Lost == node.Yes && w.DrainTimeout == 0:
		action.Message = "not registered in Slurm, which seems to have lost its state; delete the pod when you know that nothing runs there"
	case !w.Settled():
		action.Message = "waiting to see whether the node registers"
	default:
		action.Message = "waiting to see whether Slurm has lost its state: it lacks most workers that it had"
	}
}

// elsewhere tells of a worker that Slurm has by another name. Its jobs are not known by the name that we look for, so nothing is
// done to it, and it is kept.
func elsewhere(w Worker, action *Action) {
	if w.Protection != Unprotected {
		action.Protected = node.Yes
	}
	action.Message = "slurmd has registered as node " + w.Elsewhere + " rather than " + w.Slurm
	action.trouble(slinkyv1beta1.ReasonNodeNameMismatch, "slurmd has registered as Slurm node %s, and the pod is looked for as %s, so that it is not drained before it goes. "+
		"Drain node %s by hand and delete the pod; its successor registers by the right name, unless the image or spec.slurmd.args gives it another", w.Elsewhere, w.Slurm, w.Elsewhere)
}

// until waits for a list that Slurm is asked for after a time.
func (a *Action) until(at time.Time, w Worker) {
	a.wake(nodeset.Later(at, w.Now.Add(time.Second)))
	a.Relist = !w.Now.Before(at)
}

// Settled says that an absence has lasted long enough to be believed, if Slurm has not lost its state.
func (w Worker) Settled() bool { return !w.Listed.Before(w.settled()) }

func (w Worker) settled() time.Time { return w.since().Add(registrationTimeout) }

// timeout is when jobs that Slurm has forgotten, or may have, have had the time of drainTimeout.
func (w Worker) timeout() time.Time {
	return nodeset.Later(w.since(), w.Pod.RetiredAt).Add(w.DrainTimeout)
}

// since is since when the worker could have been registered and is not.
func (w Worker) since() time.Time {
	return nodeset.Later(nodeset.Later(w.Pod.ReadySince, w.Pod.Created), w.Absent)
}

// unregister deletes a retired worker that Slurm does not have.
func unregister(w Worker, action *Action) {
	action.Delete = true
	action.Message = fmt.Sprintf("retired (%s) and not registered in Slurm", w.Pod.Retired)
	if w.Pod.Retired == nodeset.Unregistered {
		// A slurmd registers when it starts, and nobody can make it do so again. Slurm deletes no record of a busy node.
		action.Cause = slinkyv1beta1.ReasonSlurmNodeNotRegistered
		action.Message = "slurmd runs, and Slurm does not have its node, which registers when it starts"
	}
}
