// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

// Rest is how far a SlurmCluster is on its way to rest, or back. Each text is a sentence: what a component waits for, or that it is
// stopped. It is empty for a component that is to run and waits for nothing.
type Rest struct {
	// Workers, Slurmctld and Slurmdbd are set for a cluster that is to be at rest, Slurmctld also for one that comes back.
	Workers, Slurmctld, Slurmdbd string
	// Clients is what workers and login pods that are to come back wait for.
	Clients string
	// Reached is true when nothing runs any more.
	Reached bool
}

// ObservedRest is what decides the order in which the parts of a cluster stop and come back.
type ObservedRest struct {
	// Controller, Accounting and LoginSet are the composed ones that exist; nil for none.
	Controller *slinkyv1beta1.Controller
	Accounting *slinkyv1beta1.Accounting
	LoginSet   *slinkyv1beta1.LoginSet
	// Workers is the number of worker pods of the cluster, whatever NodeSets they are of. They are counted during maintenance.
	Workers int
}

// suspend stops slurmctld, slurmdbd and slurmrestd in their order, and lets them, workers and login pods come back in theirs. It
// changes composed objects.
//
// Slurm has to answer until the last worker is gone, and slurmdbd takes what slurmctld records last. Backwards, slurmd and sackd get
// their configuration from slurmctld. slurmctld does not wait for slurmdbd to be ready: once registered there it can do without it.
func (c *composer) suspend(seen *Observed) {
	if c.spec.Maintenance.Downscaled() {
		c.goToRest(seen)
	} else {
		c.comeBack(seen)
	}
	parts := &c.out.Components
	if parts.Controller.Spec.Suspend {
		parts.RestAPI.Spec.Replicas = new(int32(0))
	}
}

func (c *composer) goToRest(seen *Observed) {
	parts, rest := &c.out.Components, &c.out.Rest
	workers := seen.workersLeft(parts.NodeSets)
	rest.Workers = "there are no workers during maintenance"
	if workers != "" {
		rest.Workers = workers + "; a worker goes when its jobs have ended"
	}
	was := seen.Rest.Controller
	parts.Controller.Spec.Suspend = workers == "" || was != nil && was.Spec.Suspend
	stopped := was == nil || suspended(was.Generation, was.Spec.Suspend, was.Status.Conditions)
	switch {
	case !parts.Controller.Spec.Suspend:
		rest.Slurmctld = "slurmctld runs until the workers are gone"
	case !stopped:
		rest.Slurmctld = "slurmctld is being stopped"
	default:
		rest.Slurmctld = "slurmctld is stopped, and its state is kept"
	}
	stopped = stopped && parts.Controller.Spec.Suspend
	rest.Reached = stopped && workers == ""
	if parts.Accounting == nil {
		return
	}
	db := seen.Rest.Accounting
	parts.Accounting.Spec.Suspend = stopped || db != nil && db.Spec.Suspend
	if parts.Accounting.Spec.Suspend && (db == nil || db.Spec.Suspend && meta.IsStatusConditionTrue(db.Status.Conditions, slinkyv1beta1.ConditionSuspended)) {
		parts.stopDatabase()
	}
	dbStopped := db != nil && suspended(db.Generation, db.Spec.Suspend, db.Status.Conditions)
	switch {
	case !parts.Accounting.Spec.Suspend:
		rest.Slurmdbd = "slurmdbd runs until slurmctld is stopped"
	case !dbStopped:
		rest.Slurmdbd = "slurmdbd is being stopped"
	default:
		rest.Slurmdbd = "slurmdbd is stopped, and its records are kept"
	}
	rest.Reached = rest.Reached && dbStopped
}

func (c *composer) comeBack(seen *Observed) {
	parts, rest, was := &c.out.Components, &c.out.Rest, seen.Rest.Controller
	if was == nil {
		return
	}
	if db := seen.Rest.Accounting; was.Spec.Suspend && parts.Accounting != nil && db != nil &&
		(db.Spec.Suspend || meta.IsStatusConditionTrue(db.Status.Conditions, slinkyv1beta1.ConditionSuspended)) {
		parts.Controller.Spec.Suspend = true
		rest.Slurmctld = "slurmctld waits until slurmdbd is started"
	}
	condition := meta.FindStatusCondition(was.Status.Conditions, slinkyv1beta1.ConditionSuspended)
	if !was.Spec.Suspend && (condition == nil || condition.Reason == slinkyv1beta1.ReasonResumed) {
		return
	}
	c.holdClients(seen, "waits for slurmctld", false)
}

// awaitOverwriting holds back workers and login pods while the jail that would be their root file system is overwritten.
func (c *composer) awaitOverwriting(seen *Observed) {
	if c.out.Jail.Paused {
		c.holdClients(seen, "waits until the jail is overwritten, see condition "+nebiusv1.ConditionJailPopulated, true)
	}
}

// holdClients holds back workers and login pods that have no pods yet, and records the reason for them. Nothing else waits: an
// administrator who suspends slurmctld by hand must not lose pods. With absent, what does not exist yet waits as well.
func (c *composer) holdClients(seen *Observed, reason string, absent bool) {
	parts := &c.out.Components
	hold := func(wanted *int32, exists bool, has *int32) {
		if *wanted > 0 && (exists && has != nil && *has == 0 || !exists && absent) {
			*wanted, c.out.Rest.Clients = 0, reason
		}
	}
	for _, set := range parts.NodeSets {
		switch i := seen.indexOf(set); {
		case c.held(set):
		case i < 0:
			hold(set.Spec.Replicas, false, nil)
		default:
			hold(set.Spec.Replicas, true, seen.NodeSets[i].Object.Spec.Replicas)
		}
	}
	if login := seen.Rest.LoginSet; login != nil {
		hold(parts.LoginSet.Spec.Replicas, true, login.Spec.Replicas)
	} else {
		hold(parts.LoginSet.Spec.Replicas, false, nil)
	}
}

// workersLeft describes the workers that there are, or may be; it is empty when all are gone. A NodeSet that has not seen its latest
// spec may be making some.
func (o *Observed) workersLeft(composed []*slinkyv1beta1.NodeSet) string {
	if o.Rest.Workers > 0 {
		return fmt.Sprintf("%d workers are still there", o.Rest.Workers)
	}
	for i := range o.NodeSets {
		set := o.NodeSets[i].Object
		if set.Replicas() > 0 || set.Status.ObservedGeneration < set.Generation || set.Status.Replicas > 0 {
			return "NodeSet " + set.Name + " may still have workers"
		}
	}
	if o.Rest.Controller == nil {
		return "" // of a cluster that begins at rest nothing ever ran
	}
	for _, set := range composed {
		if o.indexOf(set) < 0 {
			return "NodeSet " + set.Name + " is not created yet"
		}
	}
	return ""
}

// indexOf is the index of a composed NodeSet among those that exist, or -1.
func (o *Observed) indexOf(set *slinkyv1beta1.NodeSet) int {
	return slices.IndexFunc(o.NodeSets, func(s ObservedNodeSet) bool { return s.Object.Name == set.Name })
}

// suspended reports whether a component has stopped for its latest spec.
func suspended(generation int64, asked bool, conditions []metav1.Condition) bool {
	c := meta.FindStatusCondition(conditions, slinkyv1beta1.ConditionSuspended)
	return asked && c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration >= generation
}
