// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package jailedconfig

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/problem"
)

// outcome is how far a group has come.
type outcome struct {
	// writing is true when files are about to be written, written when they are.
	writing, written bool
	// unwritten is why they could not be written.
	unwritten string
	// waits is what the update actions wait for; acted is true when they are done.
	waits string
	acted bool
}

// report writes what became of the group into the status of each member.
func (r *reconciler) report(ctx context.Context, members []member, p plan, o outcome) error {
	var errs []error
	for _, m := range members {
		after := m.config.DeepCopy()
		files, actions := conditions(m, p, o)
		var list []metav1.Condition // other conditions are from a version that did not serve the kind
		for _, c := range after.Status.Conditions {
			if slices.Contains([]string{kube.ConditionReady, kube.ConditionReconciling, kube.ConditionStalled, files.Type, actions.Type}, c.Type) {
				list = append(list, c)
			}
		}
		now := r.Clock.Now()
		for _, c := range []metav1.Condition{files, actions} {
			c.ObservedGeneration = after.Generation
			kube.SetCondition(&list, c, now)
		}
		kube.Report(r.recorder, after, &list, kube.Summary{Generation: after.Generation, Now: now, Parts: []kube.Part{part("files", files), part("updateActions", actions)}})
		after.Status.Conditions, after.Status.ObservedGeneration = list, after.Generation
		_, err := r.applier.PatchStatus(ctx, m.config, after)
		if err == nil {
			after.DeepCopyInto(m.config) // the pass may report again
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// part returns a condition as a part of Ready.
func part(name string, c metav1.Condition) kube.Part {
	stalled := c.Reason == nebiusv1alpha1.ReasonNotFound || c.Reason == nebiusv1alpha1.ReasonNotWritten
	return kube.Part{Name: name, Ready: c.Status == metav1.ConditionTrue, Stalled: stalled, Reason: c.Reason, Message: c.Message}
}

// conditions returns the conditions of a member about its files and its update actions.
func conditions(m member, p plan, o outcome) (files, actions metav1.Condition) {
	files = metav1.Condition{Type: nebiusv1alpha1.ConditionFilesWritten, Status: metav1.ConditionFalse}
	actions = metav1.Condition{Type: nebiusv1alpha1.ConditionUpdateActionsCompleted, Status: metav1.ConditionFalse, Reason: nebiusv1alpha1.ReasonRefresh}
	name := m.config.Name
	switch {
	case p.missing[name] != "":
		files.Reason, files.Message = nebiusv1alpha1.ReasonNotFound, p.missing[name]
	case p.mistakes[name] != "":
		files.Reason, files.Message = nebiusv1alpha1.ReasonNotWritten, p.mistakes[name]
	case len(p.mistakes) > 0:
		other := slices.Min(slices.Collect(maps.Keys(p.mistakes)))
		files.Reason = nebiusv1alpha1.ReasonNotWritten
		files.Message = fmt.Sprintf("the group is written as a whole, and JailedConfig %s of it cannot be: %s", other, p.mistakes[other])
	case o.unwritten != "":
		files.Reason, files.Message = nebiusv1alpha1.ReasonNotWritten, problem.OneLine(o.unwritten)
	case o.written:
		files.Status, files.Reason, files.Message = metav1.ConditionTrue, nebiusv1alpha1.ReasonSuccess, "all files are as in the ConfigMap"
	default:
		files.Reason, files.Message = nebiusv1alpha1.ReasonRefresh, "files are being written"
	}
	switch {
	case len(m.config.Spec.UpdateActions) == 0:
		actions.Status, actions.Reason, actions.Message = metav1.ConditionTrue, nebiusv1alpha1.ReasonMissingAction, "there are no update actions"
	case files.Status != metav1.ConditionTrue:
		actions.Message = "the files are not written yet"
	case o.acted:
		actions.Status, actions.Reason, actions.Message = metav1.ConditionTrue, nebiusv1alpha1.ReasonSuccess, "slurmctld and all slurmds that respond have reread their configuration"
	default:
		actions.Message = problem.OneLine(o.waits)
	}
	return files, actions
}
