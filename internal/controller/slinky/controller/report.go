// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"
)

// observation is what runs of a Controller, besides what was gathered.
type observation struct {
	// part is the StatefulSet of slurmctld.
	part kube.Part
	// stopped reports whether slurmctld has no pods and is to have none.
	stopped bool
}

func (r *reconciler) observe(ctx context.Context, c *slinkyv1beta1.Controller, f facts, _ *plan, seen *observation) (err error) {
	if c.Spec.External {
		seen.part = kube.Part{Name: "slurmctld", Ready: true, Reason: slinkyv1beta1.ReasonExternal, Message: "slurmctld runs elsewhere"}
		return nil
	}
	pods := c.Replicas()
	if c.Suspended() {
		pods = 0
	}
	var w reconcile.Workload
	seen.part, w, err = r.ObserveWorkload(ctx, c.Namespace, c.Key().Name, &appsv1.StatefulSet{}, "slurmctld", pods)
	seen.stopped = w.None() && len(f.slurmctlds.pods) == 0
	return err
}

func report(c *slinkyv1beta1.Controller, o reconcile.Outcome[facts, *plan, observation]) reconcile.Report {
	daemons := o.Facts.slurmctlds
	c.Status.ObservedGeneration, c.Status.ClusterName, c.Status.ConfigDigest = c.Generation, c.ClusterName(), o.Plan.configDigest
	if release := daemons.daemons.Release; release != "" {
		c.Status.SlurmVersion = release
	}
	version := versionSupported(c.Status.SlurmVersion)
	applied := configApplied(c, o.Plan.Problems, daemons, meta.FindStatusCondition(c.Status.Conditions, slinkyv1beta1.ConditionConfigApplied))
	suspension := reconcile.Suspension{
		Suspend: c.Suspended(), Stopped: o.Seen.stopped, Ready: o.Seen.part.Ready,
		Before: meta.FindStatusCondition(c.Status.Conditions, slinkyv1beta1.ConditionSuspended),
	}
	out := reconcile.Report{
		Conditions:  []metav1.Condition{o.Facts.keys, doubtful(o.Plan.doubts), applied, version},
		Parts:       append(versionPart(version), suspension.Part(o.Seen.part)),
		ReadyReason: suspension.ReadyReason(),
	}
	if len(o.Facts.absences.endangered) > 0 {
		out.Again = o.Now.Add(absenceInterval)
	}
	if suspended, ok := suspension.Condition(); ok {
		out.Conditions = append(out.Conditions, suspended)
	}
	if c.Spec.External {
		out.Drop = append(out.Drop, slinkyv1beta1.ConditionJobsConfined)
	} else if len(o.Plan.Problems) == 0 {
		out.Conditions = append(out.Conditions, confined(o.Plan.unconfined))
	}
	editWaits(&out, o.Plan, daemons.needs, meta.FindStatusCondition(c.Status.Conditions, slinkyv1beta1.ConditionEditWaits))
	switch {
	case c.Spec.External:
	case c.Replicas() > 1:
		out.Conditions = append(out.Conditions, highlyAvailable(c, daemons))
		out.Problems = rejected(applied)
	default:
		out.Drop = append(out.Drop, slinkyv1beta1.ConditionHighlyAvailable)
		out.Problems = rejected(applied)
	}
	return out
}
