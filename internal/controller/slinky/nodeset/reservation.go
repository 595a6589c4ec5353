// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/controller/slinky/nodeset/nodesetplan"
	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
)

// slurmUser may use the reservation: Slurm requires a user who may.
const slurmUser = "slurm"

// maxHostListNodes bounds the expansion of a hostlist from Slurm.
const maxHostListNodes = 100_000

// reserve keeps the maintenance reservation of a ScheduledUpdate in Slurm, and adds its condition to the plan. It returns when to look
// again. It does not ask Slurm for NodeSets that never had one.
func (r *reconciler) reserve(ctx context.Context, s *scope) (time.Time, error) {
	n, seen := s.facts.set, s.seen
	wanted := nodesetplan.MaintenanceOf(n)
	if s.plan.workers.Desired == 0 {
		wanted = nil
	}
	known := meta.FindStatusCondition(n.Status.Conditions, slinkyv1beta1.ConditionReservationCreated) != nil
	l, linked := r.cacheOf(n)
	var booking nodesetplan.ReservationPlan
	switch held := controllerutil.ContainsFinalizer(n, slinkyv1beta1.FinalizerReservation); {
	case wanted == nil && !held && !known:
		return time.Time{}, nil
	case wanted == nil && !held:
		// The reconcile that took the finalizer off could not write the status: the object had changed.
		booking.Message, seen.reservation = "no reservation is requested", nil
	case !linked && known:
		return time.Time{}, nil // What was known stays: an operator that starts has no Slurm cache yet.
	case !linked:
		booking.Message = "no RestApi refers to Controller " + n.Spec.ControllerRef.Name + ", so that Slurm cannot be asked"
	case l.Snapshot().Trust != slurmcache.Fresh:
		return time.Time{}, nil // What was known stays; the NodeSet is woken when Slurm is trusted again.
	default:
		again, err := r.callSlurm(ctx, n, func(ctx context.Context) (err error) {
			booking, err = r.book(ctx, n, l, wanted, s.facts.registered, seen)
			return err
		})
		if err != nil || !again.IsZero() {
			return again, err // What was known stays; the error is tried again.
		}
	}
	c := metav1.Condition{
		Type: slinkyv1beta1.ConditionReservationCreated, Status: metav1.ConditionFalse,
		Reason: slinkyv1beta1.ReasonReservationNotExists, Message: booking.Message,
	}
	if booking.Exists {
		c.Status, c.Reason = metav1.ConditionTrue, slinkyv1beta1.ReasonReservationCreated
	}
	seen.conditions = append(seen.conditions, c)
	return booking.Again, nil
}

// book decides about the reservation and carries that out. A reservation that has to change is deleted and made in one go.
func (r *reconciler) book(ctx context.Context, n *slinkyv1beta1.NodeSet, l *slurmcache.Cache, wanted *nodesetplan.Maintenance, workers hostlist.Set, seen *observation) (nodesetplan.ReservationPlan, error) {
	name := nodesetplan.ReservationName(n.Name)
	live, err := liveReservation(ctx, l, name)
	if err != nil {
		return nodesetplan.ReservationPlan{}, fmt.Errorf("looking for the reservation of NodeSet %s/%s: %w", n.Namespace, n.Name, err)
	}
	s := nodesetplan.ReservationInput{Now: r.Clock.Now(), Wanted: wanted, Asked: asked(seen), Nodes: workers, Live: live}
	b := nodesetplan.PlanReservation(s)
	if b.Delete {
		if err := l.DeleteReservation(ctx, name); err != nil {
			return b, err
		}
		seen.reservation = nil
		log.FromContext(ctx).Info("Deleted the maintenance reservation", "reservation", name, "why", b.Message)
		r.Recorder.Eventf(n, nil, corev1.EventTypeNormal, "ReservationDeleted", "Reserve", "Deleted Slurm reservation %s: %s", name, b.Message)
		s.Live = nil
		b = nodesetplan.PlanReservation(s)
	}
	switch {
	case b.Create:
		if !controllerutil.ContainsFinalizer(n, slinkyv1beta1.FinalizerReservation) {
			// The reservation is made with the next reconcile, which this write causes.
			return nodesetplan.ReservationPlan{Message: "the reservation is being made"}, r.finalizer(ctx, n, slinkyv1beta1.FinalizerReservation, controllerutil.AddFinalizer)
		}
		v := rest.Reservation{Name: name, Start: wanted.Start, End: wanted.Start.Add(wanted.Duration), Nodes: b.Nodes.String(), Flags: wanted.Flags, Users: []string{slurmUser}}
		if err := l.PutReservation(ctx, v); err != nil {
			return refusedBooking(b, err)
		}
		log.FromContext(ctx).Info("Made the maintenance reservation", "reservation", name, "nodes", v.Nodes, "start", v.Start)
		r.Recorder.Eventf(n, nil, corev1.EventTypeNormal, "ReservationCreated", "Reserve", "Made Slurm reservation %s of %s: %s", name, v.Nodes, b.Message)
	case b.Move:
		if err := l.PutReservation(ctx, rest.Reservation{Name: name, Nodes: b.Nodes.String()}); err != nil {
			return b, err
		}
	case s.Wanted == nil:
		seen.reservation = nil
		return b, r.finalizer(ctx, n, slinkyv1beta1.FinalizerReservation, controllerutil.RemoveFinalizer)
	}
	if b.Exists {
		seen.reservation = &slinkyv1beta1.NodeSetReservation{
			Name: name, StartTime: metav1.NewTime(wanted.Start), Duration: metav1.Duration{Duration: wanted.Duration}, Flags: wanted.Flags,
		}
	}
	return b, nil
}

// leaveMaintenance takes nodes out of the open maintenance of their NodeSet, in which Slurm deletes no record, and returns those that were
// in it. Their pods are gone, which the maintenance is for. When their workers have registered they are put into it again.
func (r *reconciler) leaveMaintenance(ctx context.Context, n *slinkyv1beta1.NodeSet, l *slurmcache.Cache, names []string, seen *observation) (hostlist.Set, error) {
	if seen.reservation == nil {
		return nil, nil
	}
	name := nodesetplan.ReservationName(n.Name)
	live, err := liveReservation(ctx, l, name)
	if err != nil {
		return nil, fmt.Errorf("looking for the reservation of NodeSet %s/%s: %w", n.Namespace, n.Name, err)
	}
	if live == nil || live.Nodes.Len() == 0 || r.Clock.Now().Before(live.Start) {
		return nil, nil
	}
	leaving := live.Nodes.Intersection(hostlist.SetOf(names...))
	if leaving.Len() == 0 {
		return nil, nil
	}
	switch kept, end := live.Leave(leaving); {
	case end:
		if err := l.DeleteReservation(ctx, name); err != nil {
			return nil, err
		}
		log.FromContext(ctx).Info("Deleted the maintenance reservation", "reservation", name, "why", "its last workers are replaced")
		r.Recorder.Eventf(n, nil, corev1.EventTypeNormal, "ReservationDeleted", "Reserve", "Deleted Slurm reservation %s: its last workers are replaced", name)
		seen.reservation = nil
	case kept.Len() < live.Nodes.Len():
		if err := l.PutReservation(ctx, rest.Reservation{Name: name, Nodes: kept.String()}); err != nil {
			return nil, err
		}
	}
	return leaving, nil
}

// refusedBooking turns Slurm's refusal of a reservation into a message, so that it is not tried again until something changes.
func refusedBooking(b nodesetplan.ReservationPlan, err error) (nodesetplan.ReservationPlan, error) {
	if refusal, ok := errors.AsType[*rest.Error](err); ok && errors.Is(err, rest.Refused) {
		return nodesetplan.ReservationPlan{Message: "Slurm refuses the reservation: " + refusal.Error()}, nil
	}
	return b, err
}

func liveReservation(ctx context.Context, l *slurmcache.Cache, name string) (*nodesetplan.Reservation, error) {
	all, err := l.Reservations(ctx)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(v rest.Reservation) bool { return v.Name == name })
	if i < 0 {
		return nil, nil //nolint:nilnil // none is an answer
	}
	nodes, err := hostlist.ParseSet(all[i].Nodes, maxHostListNodes)
	if err != nil {
		return nil, err
	}
	return &nodesetplan.Reservation{Start: all[i].Start, End: all[i].End, Nodes: nodes, Flags: all[i].Flags}, nil
}

// asked returns what the reservation was made with.
func asked(seen *observation) *nodesetplan.Maintenance {
	if v := seen.reservation; v != nil {
		return &nodesetplan.Maintenance{Start: v.StartTime.UTC(), Duration: v.Duration.Duration, Flags: v.Flags}
	}
	return nil
}

// finalizer adds or removes a finalizer, which keeps the NodeSet until its reservation or its workers are gone.
func (r *reconciler) finalizer(ctx context.Context, n *slinkyv1beta1.NodeSet, name string, edit func(client.Object, string) bool) error {
	changed := n.DeepCopy()
	if !edit(changed, name) {
		return nil
	}
	if err := r.Client.Patch(ctx, changed, client.MergeFromWithOptions(n.DeepCopy(), client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("changing the finalizer of NodeSet %s/%s: %w", n.Namespace, n.Name, err)
	}
	r.Applier.Wrote(n, changed)
	n.Finalizers, n.ResourceVersion = changed.Finalizers, changed.ResourceVersion // for the status, which is written next
	return nil
}

// finalize waits for the workers of a NodeSet that is being deleted, and then deletes its reservation. It does not wait where Slurm cannot
// be asked any more because the RestApi is gone.
func (r *reconciler) finalize(ctx context.Context, n *slinkyv1beta1.NodeSet) (again time.Time, err error) {
	r.wantJobs(n, nil, nodesetplan.Plan{}, r.Clock.Now())
	if gone, again, err := r.finalizeWorkers(ctx, n); err != nil || !gone {
		return again, err
	}
	if !controllerutil.ContainsFinalizer(n, slinkyv1beta1.FinalizerReservation) {
		return time.Time{}, nil
	}
	name := nodesetplan.ReservationName(n.Name)
	if l, ok := r.cacheOf(n); ok {
		if l.Snapshot().Trust != slurmcache.Fresh {
			return time.Time{}, nil // the NodeSet is woken when Slurm is trusted again
		}
		again, err := r.callSlurm(ctx, n, func(ctx context.Context) error { return l.DeleteReservation(ctx, name) })
		if err != nil {
			return time.Time{}, fmt.Errorf("deleting the reservation of NodeSet %s/%s: %w", n.Namespace, n.Name, err)
		}
		if !again.IsZero() {
			return again, nil
		}
		log.FromContext(ctx).Info("Deleted the maintenance reservation", "reservation", name)
		// Slurm deletes no node in a reservation.
		if again, err := r.deleteDepartedNodes(ctx, n); err != nil || !again.IsZero() {
			return again, err
		}
	} else {
		log.FromContext(ctx).Info("Left the maintenance reservation in Slurm, which cannot be asked", "reservation", name)
	}
	return time.Time{}, client.IgnoreNotFound(r.finalizer(ctx, n, slinkyv1beta1.FinalizerReservation, controllerutil.RemoveFinalizer))
}
