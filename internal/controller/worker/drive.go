// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"cmp"
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/coxswain-hpc/coxswain/internal/controller/worker/workerplan"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// drive carries the action out: first what concerns jobs, then what is shown. After a drain the rest waits until Slurm has been asked
// again: of a thousand workers, the last drain must not wait for what the first pod shows.
func (r *reconciler) drive(ctx context.Context, s *scope) error {
	if s.action.StateChange.Drain != "" {
		if orphaned, err := r.orphaned(ctx, s); orphaned || err != nil {
			return err // an event of that is on its way
		}
	}
	if s.action.StateChange.Opens() {
		if c, _ := stateChangeOf(s); !r.refused(s, c).IsZero() {
			s.action.Announce = false // nothing follows for a while
		}
		// A job may start at once, and an eviction may be under way.
		if marked, err := r.mark(ctx, s); !marked || err != nil {
			return err
		}
		// The write to Slurm waits for those of others, and needs no permit.
		r.writes.end(client.ObjectKeyFromObject(s.pod), maxWrites)
	}
	r.wantJobs(s)
	if s.action.Questions.Relist {
		s.cache.Relist()
	}
	if r.setState(ctx, s) {
		return nil
	}
	r.writeRecord(ctx, s)
	if s.action.Deletion.Delete {
		deleted, err := r.delete(ctx, s)
		if deleted || err != nil {
			return err
		}
	}
	if marked, err := r.mark(ctx, s); !marked || s.action.Shown.Brief || err != nil {
		return err
	}
	return r.show(ctx, s)
}

// wantJobs has the Slurm cache ask for jobs while it must be known when those of this worker end.
func (r *reconciler) wantJobs(s *scope) {
	switch who := client.ObjectKeyFromObject(s.pod).String(); {
	case s.cache == nil || s.worker.Registered == node.Unknown:
	case s.action.Questions.WantJobs:
		s.cache.WantJobs(who, s.node)
	default:
		s.cache.WantJobs(who)
	}
}

const (
	// confirmTimeout bounds how long to wait for Slurm's confirmation.
	confirmTimeout = 30 * time.Second
	// maxConfirmations is how many reconciles wait for the Slurm of one cluster at once. The others of the cluster come back later, and those
	// of other clusters go on when it is silent.
	maxConfirmations = concurrency / 4
)

// delete deletes the very version of the pod that was decided about: it may have been unretired since. Before that it asks Slurm once more,
// and the budget of the cluster has to allow it. Otherwise the action has what is waited for.
func (r *reconciler) delete(ctx context.Context, s *scope) (deleted bool, err error) {
	if !s.action.Deletion.NeverStarted && !r.allowed(ctx, s) {
		return false, nil
	}
	err = r.Client.Delete(ctx, s.pod, client.Preconditions{UID: &s.pod.UID, ResourceVersion: &s.pod.ResourceVersion})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return true, nil // the event of that change is on its way
	}
	if err != nil {
		return false, fmt.Errorf("deleting Pod %s/%s: %w", s.pod.Namespace, s.pod.Name, err)
	}
	r.Applier.Deleted(s.pod, s.pod)
	log.FromContext(ctx).Info("Deleted a worker", "why", s.action.Shown.Message)
	r.events.add(s.set, s.pod, s.pod.Name, eventText{
		reason: cmp.Or(s.action.Deletion.Cause, "SuccessfulDelete"), action: "Delete", one: "Deleted Pod %s", many: "Deleted %d Pods %s",
		text: ": " + s.action.Shown.Message, gone: true,
	})
	return true, nil
}

// allowed asks Slurm once more, and the budget.
func (r *reconciler) allowed(ctx context.Context, s *scope) bool {
	if !r.confirming.Enter(s.cache.Key(), maxConfirmations) {
		s.action.Deletion.Delete = false
		s.action.Again = workerpod.Sooner(s.action.Again, r.Clock.Now().Add(time.Second))
		return false
	}
	defer r.confirming.Leave(s.cache.Key())
	limited, cancel := context.WithTimeout(ctx, confirmTimeout)
	defer cancel()
	snapshot, err := s.cache.Confirm(limited, s.node)
	now := r.Clock.Now()
	if err != nil {
		log.FromContext(ctx).V(1).Info("Slurm did not confirm that a worker may go", "node", s.node, "why", err.Error())
		s.action.Deletion.Delete, s.action.Shown.Message = false, "waiting for Slurm to confirm that nothing runs on it"
		s.action.Again = workerpod.Sooner(s.action.Again, now.Add(10*time.Second))
		return false
	}
	r.readSnapshot(ctx, s, snapshot)
	if s.action = workerplan.Next(s.worker); !s.action.Deletion.Delete {
		s.action.Again = workerpod.Sooner(s.action.Again, now.Add(time.Second))
		return false
	}
	if granted, again := s.cache.Spend(now, 1); granted == 0 {
		s.action.Deletion.Delete = false
		s.action.Shown.Message += "; waiting, because the limit of deletions per minute is reached in this cluster"
		s.action.Again = workerpod.Sooner(s.action.Again, again)
		return false
	}
	return true
}
