// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/controller/slinky/nodeset/nodesetplan"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// observation is what carrying out a plan has shown.
type observation struct {
	// driven reports whether the workers were looked after.
	driven bool
	// reservation is the reservation for the maintenance of the NodeSet, and conditions show its state.
	reservation *slinkyv1beta1.NodeSetReservation
	conditions  []metav1.Condition
	// again is when a change that Slurm did not make yet is tried again; zero when there is none.
	again time.Time
}

// scope is what the phases of a reconcile share.
type scope struct {
	facts facts
	plan  *plan
	seen  *observation
	// now is what the plan has for the workers, without what an earlier phase has wait.
	now nodesetplan.Plan
}

// A phase does one thing for the workers of a NodeSet, and returns when to come back; zero when an event follows.
type phase func(ctx context.Context, s *scope) (again time.Time, err error)

// phases are in the order in which they are done. Each is done, also when one before it has failed. What asks Slurm comes last: Slurm may
// be silent, and nothing else waits for it.
func (r *reconciler) phases() []phase {
	return []phase{
		r.renew,
		r.confirmPowerDown,
		r.execute,
		r.resume,
		r.makeClouds,
		r.reserve,
		r.cleanUpOrphanedNodes,
	}
}

// inTurn goes through phases, and returns the first time to come back and all errors.
func (s *scope) inTurn(ctx context.Context, phases []phase) (again time.Time, err error) {
	for _, do := range phases {
		t, failure := do(ctx, s)
		again, err = workerpod.Sooner(again, t), errors.Join(err, failure)
	}
	return again, err
}

// drive carries a plan out: first what workers need to exist, then the phases.
func (r *reconciler) drive(ctx context.Context, n *slinkyv1beta1.NodeSet, f facts, p *plan, seen *observation) error {
	defer func() { r.pace.looked(client.ObjectKeyFromObject(n), len(f.pods), r.Clock.Now()) }()
	seen.reservation = n.Status.Reservation
	if l, ok := r.linkOf(n); ok && p.workers.Relist {
		l.Relist()
	}
	applyErr := r.Apply(ctx, n, &p.Plan, &corev1.ConfigMap{})
	if problems, _ := problem.FromError(applyErr); len(problems) > 0 || len(p.Problems) > 0 {
		return applyErr
	}
	if err := r.stay(ctx, n); err != nil { // before there is a worker
		return errors.Join(applyErr, err)
	}
	if err := r.keep(ctx, n, f, p.history); err != nil {
		return errors.Join(applyErr, err)
	}
	seen.driven = true
	r.wantJobs(n, f.pods, p.workers, f.workers.Now)
	if workerpod.DryRun(n) {
		return applyErr
	}
	s := &scope{facts: f, plan: p, seen: seen, now: p.workers} // what waits is still expected
	again, err := s.inTurn(ctx, r.phases())
	seen.again = again
	return errors.Join(applyErr, err)
}
