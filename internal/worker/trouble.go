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

// Trouble is something about a worker that a person has to look at.
type Trouble struct {
	// Reason is one of PodConditionNeedsAttention.
	Reason string
	// Message names the object and says what to do.
	Message string
}

// TroubleBySlurm says of a reason that nobody knows of its trouble while Slurm does not tell of the node.
func TroubleBySlurm(reason string) bool {
	return reason != slinkyv1beta1.ReasonStuckTerminating && reason != slinkyv1beta1.ReasonKubernetesNodeNotReady
}

// stuckTerminatingTimeout is how long after the end of its grace period a pod may still be there.
const stuckTerminatingTimeout = time.Minute

// terminating is about a pod that is being deleted: whoever did that, nothing is left to decide.
func terminating(w Worker) Action {
	action := Action{Message: "the pod is being deleted"}
	if w.Gone.IsZero() {
		return action
	}
	if late := w.Gone.Add(stuckTerminatingTimeout); w.Now.Before(late) {
		action.wake(late)
		return action
	}
	action.trouble(slinkyv1beta1.ReasonStuckTerminating, "Pod %s should be gone since %s, and Kubernetes node %s has not confirmed that it ended; "+
		"it is replaced when it is gone. If the machine is lost, delete Node %s; if you know that slurmd does not run there any more, "+
		"delete the pod with --force", w.Pod.Name, w.Gone.UTC().Format(time.RFC3339), w.Host.Name, w.Host.Name)
	return action
}

// kubernetesNodeTrouble tells of a Kubernetes node that is not ready.
func kubernetesNodeTrouble(w Worker, action *Action) {
	if w.Host.Ready == node.No {
		action.trouble(slinkyv1beta1.ReasonKubernetesNodeNotReady, "Kubernetes node %s is not ready; slurmd and jobs may go on there, so nothing is deleted. "+
			"If the machine is lost, delete Node %s: its pods go with it and are made anew elsewhere", w.Host.Name, w.Host.Name)
	}
}

// trouble adds something that a person has to look at.
func (a *Action) trouble(reason, format string, args ...any) {
	a.Troubles = append(a.Troubles, Trouble{Reason: reason, Message: fmt.Sprintf(format, args...)})
}

// wake asks for another look at a time.
func (a *Action) wake(at time.Time) { a.Again = nodeset.Sooner(a.Again, at) }
