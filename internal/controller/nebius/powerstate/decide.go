// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package powerstate

import (
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/controller/nebius/powerstate/powerstateplan"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"
)

// plan is what is to be done for a NodeSetPowerState. Without an answer from Slurm nothing is.
type plan struct {
	reconcile.Plan
	// asked reports whether Slurm has answered, so that nodes is decided.
	asked bool
	nodes powerstateplan.ActiveNodes
}

const activeNodesPath = "spec.activeNodes"

func decide(f facts) *plan {
	p := &plan{}
	switch {
	case f.set == nil:
		p.Problems = problem.List{problem.Waitingf("spec.nodeSetRef", slinkyv1beta1.ReasonReferenceNotFound, "NodeSet %s does not exist", f.state.Spec.NodeSetRef)}
		return p
	case !f.set.Spec.EphemeralNodes:
		p.Problems = problem.List{problem.Errorf("spec.nodeSetRef", nebiusv1alpha1.ReasonNotEphemeral,
			"Slurm powers no nodes of NodeSet %s up or down: its nodes always run. Set its spec.ephemeralNodes, or delete this object", f.set.Name)}
		return p
	case f.composed == nil || !f.asked:
		return p
	}
	p.asked = true
	p.nodes = powerstateplan.DecideActiveNodes(f.powers())
	if beyond := p.nodes.Beyond; len(beyond) > 0 {
		p.Problems = problem.List{problem.Errorf(activeNodesPath, slinkyv1beta1.ReasonInvalidSpec,
			"NodeSet %s has %d nodes, and no node %s: take it away here, or raise spec.replicas there", f.set.Name, f.composed.Replicas(), join(beyond))}
	}
	return p
}

// powers returns what is known about each ordinal.
func (f *facts) powers() map[int32]powerstateplan.OrdinalPower {
	out := map[int32]powerstateplan.OrdinalPower{}
	active, before := sets.New(f.state.Spec.ActiveNodes...), sets.New(shown(f.state)...)
	for ordinal, n := range f.nodes {
		p, exists := f.pods[ordinal]
		out[ordinal] = powerstateplan.OrdinalPower{
			Active: active.Has(ordinal), Shown: before.Has(ordinal),
			Beyond: ordinal >= f.composed.Replicas(), Pod: exists && !p.leaving, Known: n.known, State: n.state, Held: n.held,
		}
	}
	return out
}

// shown returns the ordinals that the operator has shown in spec.activeNodes; none when it has shown none yet, or when they cannot be read.
func shown(state *nebiusv1alpha1.NodeSetPowerState) (out []int32) {
	for text := range strings.SplitSeq(state.Annotations[nebiusv1alpha1.AnnotationActiveNodes], ",") {
		if ordinal, err := strconv.ParseUint(text, 10, 31); err == nil {
			out = append(out, int32(ordinal))
		}
	}
	return out
}

// join writes ordinals in the form that shown reads.
func join(ordinals []int32) string {
	texts := make([]string, len(ordinals))
	for i, ordinal := range ordinals {
		texts[i] = strconv.Itoa(int(ordinal))
	}
	return strings.Join(texts, ",")
}
