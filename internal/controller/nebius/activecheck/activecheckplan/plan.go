// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package activecheckplan

import (
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

// RunInput is a run that is not over, and what is known of it.
type RunInput struct {
	RunFacts
	// Nodes are Slurm's nodes, if it is reachable, and jobs are to be submitted or have ended.
	Nodes []rest.Node
	// There lists the jobs of the run that Slurm has, if they are known.
	There []SubmittedJob
	// Refused is Slurm's error for a job that it refused; empty for none.
	Refused string
	// Ended are jobs of the run that have ended, and whose end is not recorded yet.
	Ended []EndedJob
}

// EndedJob is a Slurm job of a run that has ended.
type EndedJob struct {
	CheckedJob
	// Reason is Slurm's.
	Reason string
}

// RunPlan is the next step of a run.
type RunPlan struct {
	Job *batchv1.Job
	// Step is the kind of it.
	Step Step
	// Submit are the jobs to submit. When all are submitted, and for StepGiveUp, Record is written with the jobs that are there.
	Submit []rest.Submission
	// Record is what to write once the rest is done.
	Record Record
	// Conclusions are what follows from the jobs that have ended.
	Conclusions []Conclusion
}

// Conclusion is what follows from the end of one job.
type Conclusion struct {
	Job EndedJob
	// Reactions are what to do about its nodes.
	Reactions []NodeReaction
	// Left are the reasons why nodes are not drained.
	Left []string
}

// noGPUs is why a run is skipped in a cluster that has none.
const noGPUs = "the job asks for GPUs, and no worker of the cluster has any"

// notSubmitted is the message of a run that could not be submitted in time.
const notSubmitted = "spec.activeDeadlineSeconds had passed"

// PlanRun returns the next step of a run. A check with mistakes submits nothing; jobs that are submitted are followed all
// the same.
func PlanRun(in Input, mistakes bool, f RunInput) RunPlan {
	plan := RunPlan{Job: f.Job, Step: NextStep(f.RunFacts), Record: ReadRecord(f.Job.Annotations)}
	switch plan.Step {
	case StepSubmit:
		run, problems := RunOf(in, f.Job)
		if mistakes || len(problems) > 0 || strings.TrimSpace(script(in)) == "" {
			plan.Step = StepWait
			return plan
		}
		if needsGPUs(run.Given) && !in.GPUs && len(f.There) == 0 && !slices.ContainsFunc(f.Nodes, hasGPUs) {
			plan.Record.Submitted, plan.Record.Skipped = true, noGPUs
			return plan
		}
		plan.Record.Refused = f.Refused
		if f.Refused == "" || run.EachWorker || run.Array {
			plan.Submit = Missing(run, f.Nodes, f.There, f.Job)
		}
	case StepGiveUp:
		plan.Record.Refused = notSubmitted
	case StepFollow:
		for _, job := range f.Ended {
			plan.conclude(in.Check, job, f.Nodes)
		}
		return plan
	default:
		return plan
	}
	plan.Record.Submitted = true
	for _, job := range f.There {
		plan.Record.IDs = append(plan.Record.IDs, job.ID)
	}
	return plan
}

// conclude adds what follows from the end of a job. A node that drains already keeps its reason. A node of which Slurm
// does not show whether it drains is left alone.
func (p *RunPlan) conclude(check *nebiusv1alpha1.ActiveCheck, job EndedJob, nodes []rest.Node) {
	reactions, _ := ReactTo(check, job.CheckedJob) // the mistakes are told of the check itself
	out := Conclusion{Job: job}
	for _, r := range reactions {
		at := slices.IndexFunc(nodes, func(n rest.Node) bool { return n.Name == r.Node })
		drains := node.Unknown
		if at >= 0 {
			drains = node.Parse(nodes[at].State).Drain()
		}
		switch {
		case at < 0:
			out.Left = append(out.Left, "node "+r.Node+" does not exist any more")
			continue
		case r.Drain == "" || drains == node.No:
		case drains == node.Yes:
			out.Left, r.Drain = append(out.Left, "node "+r.Node+" drains already"), ""
		default:
			out.Left, r.Drain = append(out.Left, "Slurm does not say whether node "+r.Node+" drains"), ""
		}
		if r != (NodeReaction{Node: r.Node}) {
			out.Reactions = append(out.Reactions, r)
		}
	}
	p.Conclusions = append(p.Conclusions, out)
	p.Record.Ended[job.ID] = End{State: job.State, Reason: job.Reason}
}

// LookAgain returns when to look at a run again although nothing changes: when its submission must end. It is zero where that is not waited
// for.
func LookAgain(plan RunPlan) time.Time {
	if plan.Step != StepWait && plan.Step != StepSubmit || plan.Job.Status.StartTime == nil {
		return time.Time{}
	}
	return LastSubmission(plan.Job)
}
