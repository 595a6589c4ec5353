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
	plans "github.com/coxswain-hpc/coxswain/internal/nodeset"
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

// drive carries a plan out. What asks Slurm comes last: Slurm may be silent, and nothing else waits for it.
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
	now := p.workers // what waits is still expected
	renewed, renewErr := r.renew(ctx, f.input, seen, &now)
	offAgain, offErr := r.confirmPowerDown(ctx, n, f, &now)
	claimsAgain, err := r.execute(ctx, f, p, now)
	resumeAgain, resumeErr := r.resume(ctx, n, f.workers)
	cloudAgain, cloudErr := r.makeClouds(ctx, n, f)
	again, reserveErr := r.reserve(ctx, n, f.registered, p.workers.Desired, seen)
	cleanUpAgain, cleanUpErr := r.cleanUpOrphanedNodes(ctx, n, f.pods, f.workers, p.workers)
	for _, t := range []time.Time{renewed, offAgain, claimsAgain, resumeAgain, cloudAgain, again, cleanUpAgain} {
		seen.again = plans.Sooner(seen.again, t)
	}
	return errors.Join(applyErr, renewErr, offErr, err, resumeErr, cloudErr, cleanUpErr, reserveErr)
}
