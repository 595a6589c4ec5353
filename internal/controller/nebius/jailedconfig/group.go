// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package jailedconfig

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
)

// catchUp is when a group is looked at again after the cache showed an older version than the API server has. Changes of a status do not
// wake this controller.
const catchUp = time.Second

// Reconcile brings a group a step further. It does not wait: what takes time is looked at again later.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (ctrl.Result, error) {
	members, behind, err := r.gather(ctx, req)
	if err != nil {
		return ctrl.Result{}, err
	}
	if behind { // an older status does not show what is owed
		return ctrl.Result{RequeueAfter: catchUp}, nil
	}
	result, err := r.pass(ctx, req, members)
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: catchUp}, nil
	}
	return result, err
}

func (r *reconciler) pass(ctx context.Context, req reconcile.Request, members []member) (ctrl.Result, error) {
	if len(members) == 0 { // the files stay in the jail
		r.waiting.end(req.String())
		return ctrl.Result{}, nil
	}
	p := decide(members)
	if len(p.mistakes) > 0 {
		return ctrl.Result{}, r.report(ctx, members, p, outcome{}) // a change of an object wakes the group
	}
	until, err := r.write(ctx, req.String(), members, p)
	if err != nil {
		return ctrl.Result{}, errors.Join(err, r.report(ctx, members, p, outcome{unwritten: err.Error()}))
	}
	done := outcome{written: true}
	if p.reconfigure && r.owed(members) {
		if left := until.Sub(r.Clock.Now()); !until.IsZero() && left > 0 {
			done.waits = "caches of other machines may still show the old files"
			return ctrl.Result{RequeueAfter: left}, r.report(ctx, members, p, done)
		}
		var again time.Duration
		if again, done.waits, err = r.reconfigure(ctx, req.String()); err != nil {
			done.waits = err.Error()
		}
		if done.waits != "" {
			return ctrl.Result{RequeueAfter: again}, errors.Join(err, r.report(ctx, members, p, done))
		}
	}
	done.acted = true
	if err := r.report(ctx, members, p, done); err != nil || until.IsZero() {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: max(time.Millisecond, until.Sub(r.Clock.Now()))}, nil
}

// gather reads the members of a group, by name. behind is true when the cache lacks something that was written for one of them.
func (r *reconciler) gather(ctx context.Context, req reconcile.Request) (members []member, behind bool, err error) {
	var list nebiusv1alpha1.JailedConfigList
	if err := r.List(ctx, &list, client.InNamespace(req.Namespace)); err != nil {
		return nil, false, fmt.Errorf("listing JailedConfigs of %s: %w", req.Namespace, err)
	}
	for i := range list.Items {
		c := &list.Items[i]
		if groupOf(c) != req.Name || c.DeletionTimestamp != nil {
			continue
		}
		if behind, err := r.applier.Behind(ctx, c); err != nil || behind {
			return nil, behind, err
		}
		m := member{config: c, from: &corev1.ConfigMap{}}
		err := r.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: c.Spec.ConfigMap.Name}, m.from)
		if apierrors.IsNotFound(err) {
			m.from = nil
		} else if err != nil {
			return nil, false, fmt.Errorf("reading ConfigMap %s/%s: %w", c.Namespace, c.Spec.ConfigMap.Name, err)
		}
		members = append(members, m)
	}
	slices.SortFunc(members, func(a, b member) int { return strings.Compare(a.config.Name, b.config.Name) })
	return members, false, nil
}

// write writes the files that differ, and returns until when old files stay beside them. Before it changes one, the status of all members
// shows that their update actions are to be done: after a crash in between they are owed.
func (r *reconciler) write(ctx context.Context, key string, members []member, p plan) (until time.Time, err error) {
	changed, err := r.Writer.Changed(p.files)
	if err != nil {
		return time.Time{}, err
	}
	if len(changed) > 0 {
		r.waiting.end(key) // slurmds that have read what was before do not count
		if err := r.report(ctx, members, p, outcome{writing: true}); err != nil {
			return time.Time{}, err
		}
	}
	changed, until, err = r.Writer.Write(p.files)
	if err == nil && len(changed) > 0 {
		ctrl.LoggerFrom(ctx).Info("Wrote files into the jail", "group", key, "files", len(changed), "first", changed[0])
	}
	return until, err
}

// owed reports whether a member has update actions that are not done.
func (r *reconciler) owed(members []member) bool {
	return slices.ContainsFunc(members, func(m member) bool {
		c := meta.FindStatusCondition(m.config.Status.Conditions, nebiusv1alpha1.ConditionUpdateActionsCompleted)
		return m.from != nil && len(m.config.Spec.UpdateActions) > 0 &&
			(c == nil || c.Reason != nebiusv1alpha1.ReasonSuccess || c.ObservedGeneration != m.config.Generation)
	})
}
