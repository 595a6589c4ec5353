// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/controller/slinky/nodeset/nodesetplan"
	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmd"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

func report(n *slinkyv1beta1.NodeSet, o reconcile.Outcome[facts, *plan, observation]) reconcile.Report {
	f, p, s := o.Facts, o.Plan, &n.Status
	s.ObservedGeneration, s.Desired = n.Generation, p.desired
	s.Selector = metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: slurmd.Labels(n).Selector()})
	s.Reservation = o.Seen.reservation
	out := reconcile.Report{Conditions: o.Seen.conditions, Again: p.workers.Again}
	if o.Seen.driven {
		s.NodeSetHash = p.revision
		if p.history.Collisions > 0 {
			s.CollisionCount = &p.history.Collisions
		}
		s.OrdinalToNode = nodesetplan.Pinned(f.workers.Pins)
		s.Plan, s.Planned = p.steps, p.planned
		out.Problems = append(out.Problems, f.unfit...)
		out.Again = workerpod.Sooner(p.workers.Again, o.Seen.again)
	}
	if c, ok := lost(n, f.workers, p.workers); ok {
		out.Conditions = append(out.Conditions, c)
		if c.Status == metav1.ConditionTrue {
			out.Problems = append(out.Problems, problem.Waitingf("workers", slinkyv1beta1.ReasonWorkersUnknown, "%s", c.Message))
		}
	}
	drainsPaused(n, f.brake, &out)
	part := count(n, f.pods, s.NodeSetHash, o.Now)
	if o.Seen.driven && n.Spec.PinToNode && !part.Ready { // else the Kubernetes nodes were not looked at
		part.Message += unscheduled(f.pods, f.workers.Nodes)
	}
	out.Parts = []kube.Part{part}
	return out
}
