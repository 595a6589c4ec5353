// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package activecheck

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	"github.com/coxswain-hpc/coxswain/internal/controller/nebius/activecheck/activecheckplan"
	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"
)

// plan is what is to be done for an ActiveCheck.
type plan struct {
	reconcile.Plan
	gate activecheckplan.Gate
	// firstRunDue reports whether the check is to run after creation, and has not run yet.
	firstRunDue bool
	// marks are what worker pods are to show about the check.
	marks []activecheckplan.Mark
	// runs are what is to be done about the runs of Slurm jobs.
	runs []activecheckplan.RunPlan
}

func decide(f facts) *plan {
	out := activecheckplan.Decide(f.Input)
	p := &plan{Plan: reconcile.Plan{Output: out.Output}, gate: out.Gate, firstRunDue: out.FirstRunDue, marks: out.Marks}
	p.Problems = append(p.Problems, f.problems...)
	if f.Stand != nil {
		p.Notes = append(p.Notes, fmt.Sprintf("%s: images of Soperator do not start here, and %s runs the command of the check, with ServiceAccount %s",
			activecheckplan.ImagePath, f.Stand.Image, f.Stand.Account))
	}
	if f.Access != nil {
		p.Notes = append(p.Notes, "spec.k8sJobSpec.mungeContainer: sackd runs in its place, so that Slurm's commands in the check work")
	}
	for _, run := range f.runs {
		p.runs = append(p.runs, activecheckplan.PlanRun(f.Input, len(p.Problems) > 0, run))
	}
	return p
}

func report(check *nebiusv1alpha1.ActiveCheck, o reconcile.Outcome[facts, *plan, struct{}]) reconcile.Report {
	if activecheckplan.IsSlurmJob(check) {
		return reportSlurm(check, o)
	}
	before := check.Status.K8sJobsStatus
	after := activecheckplan.JobsStatus(o.Facts.Input, before, o.Now)
	check.Status.K8sJobsStatus = after
	out := reconcile.Report{Parts: []kube.Part{part(check, o.Facts, o.Plan)}}
	if failedAnew(before, after) {
		out.Events = append(out.Events, reconcile.Event{
			Type: corev1.EventTypeWarning, Reason: nebiusv1alpha1.ReasonCheckFailed, Action: "Check",
			Note: fmt.Sprintf("Job %s failed: %s", after.LastJobName, activecheckplan.Failure(o.Facts.Jobs, after.LastJobName)),
		})
	}
	for _, m := range o.Plan.marks {
		if m.Failed {
			out.Events = append(out.Events, reconcile.Event{
				Type: corev1.EventTypeWarning, Reason: nebiusv1alpha1.ReasonCheckFailed, Action: "Check",
				Note: fmt.Sprintf("worker %s takes no jobs: %s", m.Pod, m.CheckState),
			})
		}
	}
	return out
}

// reportSlurm reports on a check of Slurm jobs. The check is looked at again when the submission that waits for Slurm ends.
func reportSlurm(check *nebiusv1alpha1.ActiveCheck, o reconcile.Outcome[facts, *plan, struct{}]) reconcile.Report {
	before := check.Status.SlurmJobsStatus
	after := activecheckplan.SlurmStatus(o.Facts.Input, before, o.Now)
	check.Status.SlurmJobsStatus = after
	out := reconcile.Report{Parts: []kube.Part{part(check, o.Facts, o.Plan)}, Problems: activecheckplan.NotServed(o.Facts.Input)}
	if note := activecheckplan.RunFailure(o.Facts.Input, before, after); note != "" {
		out.Events = append(out.Events, reconcile.Event{Type: corev1.EventTypeWarning, Reason: nebiusv1alpha1.ReasonCheckFailed, Action: "Check", Note: note})
	}
	for _, run := range o.Plan.runs {
		if at := activecheckplan.LookAgain(run); !at.IsZero() && (out.Again.IsZero() || at.Before(out.Again)) {
			out.Again = at
		}
	}
	return out
}

// failedAnew reports whether the last Job has failed and the status did not show that before.
func failedAnew(before, after *nebiusv1alpha1.K8sJobsStatus) bool {
	return after != nil && after.LastJobStatus == nebiusv1alpha1.K8sJobFailed &&
		(before == nil || before.LastJobStatus != after.LastJobStatus || before.LastJobName != after.LastJobName)
}

// part reports whether the check runs as its spec asks. How its runs end does not matter for that.
func part(check *nebiusv1alpha1.ActiveCheck, f facts, p *plan) kube.Part {
	gate := p.gate
	waits := kube.Part{Name: gate.Part, Reason: kube.ReasonWaiting, Message: gate.Waits}
	cron := kube.Part{Name: "CronJob " + check.Name, Ready: true}
	switch {
	case !gate.Open() && (f.CronJob == nil || p.firstRunDue || f.Cluster == nil):
		return waits
	case gate.Rests:
		cron.Message = "scheduled runs are suspended, because " + gate.Part + " " + gate.Waits
	case check.Spec.Suspend == nil || *check.Spec.Suspend:
		cron.Message = "there are only runs by hand, because spec.suspend is true"
	default:
		cron.Message = "runs by schedule " + check.Spec.Schedule
	}
	return cron
}
