// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/controller/slinky/nodeset/nodesetplan"
	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmd"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// plan is what is to be done for a NodeSet.
type plan struct {
	reconcile.Plan
	// history is what becomes of the ControllerRevisions, and revision the hash of the newest.
	history  nodesetplan.History
	revision string
	workers  nodesetplan.Plan
	// desired is how many workers there are to be.
	desired int32
	// steps are what the status shows of the plan, planned is how many there are, and texts are what pods show, by name.
	steps   []slinkyv1beta1.NodeSetStep
	planned int32
	texts   map[string]string
}

func decide(f facts) *plan {
	n := f.set
	p := &plan{revision: n.Status.NodeSetHash, desired: n.Status.Desired}
	if n.ScalingMode() == slinkyv1beta1.ScalingModeStatefulSet && !n.SavesPower() {
		p.desired = n.Replicas()
	}
	if len(f.problems) > 0 {
		p.Problems = f.problems
		p.workers = nodesetplan.Make(f.workers)
		return p
	}
	p.Add(kube.Shared(slurmd.Service(n)))
	if n.Spec.SSH.Enabled {
		p.Add(slurmd.SSHConfig(f.input))
		if !f.hostKeys { // looked for in the cache: a NodeSet is looked at with every change of a worker
			secret, used := slurmd.HostKeys(f.input)
			p.Ensure(used, secret)
		}
	}
	if n.DisruptionProtection() {
		// From a budget of somebody else, such as slurm-operator, unwanted fields cannot be taken away.
		p.Add(kube.Recreate(kube.Shared(slurmd.DisruptionBudget(n))))
	} else {
		p.Release = append(p.Release, slurmd.DisruptionBudget(n))
	}
	slurmd.Ignore(n, &p.Output)
	p.history = history(f)
	p.revision = p.history.Hash
	p.workers = nodesetplan.Make(f.planned(p.revision))
	p.desired = int32(p.workers.Desired) //nolint:gosec // a number of pods
	tell(f, p)
	return p
}

// planned returns what the plan for the workers is made from, once their revision is known.
func (f facts) planned(revision string) nodesetplan.Input {
	in := f.workers
	in.Revision = revision
	return in
}

// bornProtected reports whether workers are made with the protect label: a job may start as soon as slurmd has registered. Without a
// RestApi nothing would ever take the label off.
func (r *reconciler) bornProtected(n *slinkyv1beta1.NodeSet) bool {
	_, ok := r.cacheOf(n)
	return ok && workerpod.ProtectionOf(n) == workerpod.UntilDrained
}
