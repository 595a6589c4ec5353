// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/coxswain-hpc/coxswain/internal/link"
	"github.com/coxswain-hpc/coxswain/internal/nodeset"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

// drive carries the action out: first what concerns jobs, then what is shown. After a drain the rest waits until Slurm has
// been asked again: of a thousand workers the last one's drain must not wait for what is shown of the first.
func (r *reconciler) drive(ctx context.Context, s *scope) error {
	if s.action.Drain != "" {
		if orphaned, err := r.orphaned(ctx, s); orphaned || err != nil {
			return err // an event of that is on its way
		}
	}
	if s.action.Opens() {
		// A job may start at once, and an eviction may be under way.
		if marked, err := r.mark(ctx, s); !marked || err != nil {
			return err
		}
		if until := r.memory.guarded(s.pod, r.Clock.Now()); s.action.Protected == node.Yes && !until.IsZero() {
			s.action.Again = nodeset.Sooner(s.action.Again, until)
			return nil
		}
		// The write to Slurm waits for those of others, and needs no turn.
		r.turns.end(client.ObjectKeyFromObject(s.pod), mostWrites)
	}
	r.wantJobs(s)
	if s.action.Relist {
		s.link.Relist()
	}
	if changed, err := r.setState(ctx, s); changed || err != nil {
		s.action.Again = nodeset.Sooner(s.action.Again, r.Clock.Now().Add(time.Second))
		return err
	}
	r.writeRecord(s)
	if s.action.Delete {
		deleted, err := r.delete(ctx, s)
		if deleted || err != nil {
			return err
		}
	}
	if marked, err := r.mark(ctx, s); !marked || err != nil {
		return err
	}
	return r.show(ctx, s)
}

// setState drains and undrains the Slurm node, or lets it be used again.
func (r *reconciler) setState(ctx context.Context, s *scope) (changed bool, err error) {
	var what, event, done string
	var failures link.Failures
	switch a := s.action; {
	case a.Drain != "":
		what, event, done = "draining", "Drained", "drains: "+a.Drain
		if s.worker.Host.Cordoned == node.Yes && s.worker.Pod.Retired == "" {
			event = "NodeCordon"
		}
		failures = s.link.Drain(ctx, []string{s.node}, a.Drain)
	case a.Undrain:
		what, event, done = "undraining", "Undrained", "takes jobs again"
		failures = s.link.Undrain(ctx, []string{s.node})
	case a.Revive:
		what, event, done = "reviving", "Revived", "is no longer down: another slurmd stands behind it"
		failures = s.link.Revive(ctx, []string{s.node})
	default:
		return false, nil
	}
	err, ended := failures[s.node], r.Clock.Now()
	if err == nil {
		ended = s.link.Written() // on a busy machine Slurm may have been asked again before we learn that
	}
	r.memory.wrote(client.ObjectKeyFromObject(s.pod), ended)
	switch {
	case errors.Is(err, link.ErrClosed):
		return true, nil // the cluster goes, or another link follows; either wakes the worker
	case err != nil:
		return false, fmt.Errorf("%s Slurm node %s of Pod %s/%s: %w", what, s.node, s.pod.Namespace, s.pod.Name, err)
	}
	log.FromContext(ctx).Info("Changed the state of a Slurm node", "node", s.node, "change", what, "reason", s.action.Drain)
	r.Recorder.Eventf(s.pod, nil, corev1.EventTypeNormal, event, "SetState", "Slurm node %s %s", s.node, done)
	return true, nil
}

// wantJobs lets the link ask for jobs while it must be known when those of this worker end.
func (r *reconciler) wantJobs(s *scope) {
	switch who := client.ObjectKeyFromObject(s.pod).String(); {
	case s.link == nil || s.worker.Known == node.Unknown:
	case s.action.WantJobs:
		s.link.WantJobs(who, s.node)
	default:
		s.link.WantJobs(who)
	}
}

// confirming bounds how long to wait for Slurm's last word.
const confirming = 30 * time.Second

// delete deletes the very version of the pod that was decided about: it may have been reprieved since. Slurm is asked once
// more before that, and the budget of the cluster has to allow it. Otherwise the action says what is waited for.
func (r *reconciler) delete(ctx context.Context, s *scope) (deleted bool, err error) {
	if !s.action.NeverStarted && !r.allowed(ctx, s) {
		return false, nil
	}
	err = r.Client.Delete(ctx, s.pod, client.Preconditions{UID: &s.pod.UID, ResourceVersion: &s.pod.ResourceVersion})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return true, nil // the event of that change is on its way
	}
	if err != nil {
		return false, fmt.Errorf("deleting Pod %s/%s: %w", s.pod.Namespace, s.pod.Name, err)
	}
	log.FromContext(ctx).Info("Deleted a worker", "why", s.action.Message)
	r.Recorder.Eventf(s.set, s.pod, corev1.EventTypeNormal, cmp.Or(s.action.Cause, "SuccessfulDelete"), "Delete",
		"Deleted Pod %s: %s", s.pod.Name, s.action.Message)
	return true, nil
}

// allowed asks Slurm once more, and the budget.
func (r *reconciler) allowed(ctx context.Context, s *scope) bool {
	limited, cancel := context.WithTimeout(ctx, confirming)
	defer cancel()
	snapshot, err := s.link.Confirm(limited, s.node)
	now := r.Clock.Now()
	if err != nil {
		log.FromContext(ctx).V(1).Info("Slurm did not confirm that a worker may go", "node", s.node, "why", err.Error())
		s.action.Delete, s.action.Message = false, "waiting for Slurm to confirm that nothing runs on it"
		s.action.Again = nodeset.Sooner(s.action.Again, now.Add(10*time.Second))
		return false
	}
	r.look(s, snapshot)
	if s.action = nodeset.Next(s.worker); !s.action.Delete {
		s.action.Again = nodeset.Sooner(s.action.Again, now.Add(time.Second))
		return false
	}
	if granted, again := s.link.Spend(now, 1); granted == 0 {
		s.action.Delete = false
		s.action.Message += "; waiting, because this cluster has seen as many deletions within a minute as it may"
		s.action.Again = nodeset.Sooner(s.action.Again, again)
		return false
	}
	return true
}
