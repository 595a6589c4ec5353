// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/kube/foreignkind"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"
	"github.com/coxswain-hpc/coxswain/internal/reconcile/reference"
	"github.com/coxswain-hpc/coxswain/internal/render"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmctld"
)

// plan is what is to be done for a Controller.
type plan struct {
	reconcile.Plan
	// doubts are keys that slurmctld may or may not know.
	doubts problem.List
	// unconfined is what the configuration lacks to keep jobs to what they were given.
	unconfined []string
	// configDigest is the digest of the configuration that slurmctld is to have, and of the configuration before when there are problems.
	configDigest string
	// waits is what stays of the configuration before, for the jobs that may need it.
	waits slurmctld.EditWaits
	// edits reports whether slurmctld is to get another configuration. announced is the digest of the one that it is to have, also while that
	// waits for jobs.
	edits     bool
	announced string
	// marks are written on pods once everything is applied. led is written instead when that fails: it does not announce to kubelets a
	// configuration that is not there.
	marks, led []marking
}

func decide(f facts) *plan {
	c, out := f.Controller, slurmctld.Render(f.Input)
	p := &plan{Plan: reconcile.Plan{Output: out.Output}, doubts: out.Doubts, unconfined: out.Unconfined, configDigest: c.Status.ConfigDigest}
	p.Secrets = reference.GeneratedKeys(c)
	p.Problems = append(p.Problems, f.problems...)
	p.Fail("spec.accountingRef", f.upgrade(p.Objects).wait())
	p.announced = p.configDigest
	if len(p.Problems) == 0 {
		p.announced, p.edits = out.ConfigDigest, f.Live != nil && slurmctld.LiveDigest(f.Live) != out.ConfigDigest
	}
	if p.edits {
		p.Fail("", f.absences.wait(c, out.ConfigDigest))
	}
	exchangeStatefulSet(f.slurmctld, p.Objects)
	serviceMonitor(c, f.monitors, p)
	refresh := ""
	if len(p.Problems) == 0 {
		p.configDigest = out.ConfigDigest
		p.waits = out.EditWaits
		if c.Spec.InplaceReconfigure {
			refresh = p.configDigest
		}
	}
	if !c.Spec.External {
		leader := active(c, f.slurmctlds)
		p.marks, p.led = mark(f.slurmctlds.pods, leader, refresh), mark(f.slurmctlds.pods, leader, "")
	}
	return p
}

// exchangeStatefulSet has the StatefulSet made anew when its pods get their host names from another Service, which cannot be changed. Its
// pods stay until the new one replaces them one by one.
func exchangeStatefulSet(live *appsv1.StatefulSet, objects []render.Object) {
	if live == nil {
		return
	}
	for i, o := range objects {
		if set, ok := o.(*appsv1.StatefulSet); ok && set.Spec.ServiceName != live.Spec.ServiceName {
			objects[i] = kube.Recreate(set)
		}
	}
}

// serviceMonitor adds a ServiceMonitor for the metrics of slurmctld to the plan where the cluster can have one, and has it
// deleted when it is not wanted.
func serviceMonitor(c *slinkyv1beta1.Controller, monitors foreignkind.Fit, p *plan) {
	switch wanted := slurmctld.WantsServiceMonitor(c); {
	case wanted && !monitors.Usable():
		p.Ignore(true, "spec.metrics.serviceMonitor ("+monitors.Why(slurmctld.ServiceMonitorDefinition)+")")
	case wanted:
		p.Add(slurmctld.ServiceMonitor(c))
	case monitors.Usable():
		monitor := &metav1.PartialObjectMetadata{}
		monitor.SetGroupVersionKind(slurmctld.ServiceMonitorKind)
		monitor.Namespace, monitor.Name = c.Namespace, c.ServiceMonitorName()
		p.Delete = append(p.Delete, monitor)
	}
}
