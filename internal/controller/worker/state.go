// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"errors"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/coxswain-hpc/coxswain/internal/controller/worker/workerplan"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// stateChange is a change of the state of a Slurm node.
type stateChange struct {
	// what names it in the log, told is the text of its Event.
	what string
	told eventText
	// reason is the reason of a drain.
	reason string
	// opens reports whether it lets jobs onto the node.
	opens bool
	// write hands it to the Slurm cache, which drops it if it has not left by then; zero for whenever.
	write func(l *slurmcache.Cache, ctx context.Context, node string, by time.Time, told func(error))
}

// stateChangeOf returns what the action asks for.
func stateChangeOf(s *scope) (stateChange, bool) {
	switch a := s.action; {
	case a.StateChange.Drain != "":
		c := stateChange{what: "draining", reason: a.StateChange.Drain, told: eventText{
			reason: "Drained", action: "SetState", one: "Slurm node %s drains", many: "%d Slurm nodes %s drain", text: ": " + a.StateChange.Drain,
		}}
		switch host := s.worker.Host; {
		case s.worker.Pod.Retired != "":
		case host.Reboot.Wanted:
			c.told.reason = "NodeReboot"
		case host.Maintenance.Announced():
			c.told.reason = "NodeMaintenance"
		case node.Reason{Text: a.StateChange.Drain}.OfStorage():
			c.told.reason, c.told.warning = "HighEphemeralStorageUsage", true
		case host.Cordoned == node.Yes:
			c.told.reason = "NodeCordon"
		}
		c.write = func(l *slurmcache.Cache, ctx context.Context, name string, _ time.Time, told func(error)) {
			l.DrainLater(ctx, name, a.StateChange.Drain, told)
		}
		return c, true
	case a.StateChange.Undrain:
		return stateChange{what: "undraining", opens: true, write: (*slurmcache.Cache).UndrainLater, told: eventText{
			reason: "Undrained", action: "SetState", one: "Slurm node %s takes jobs again", many: "%d Slurm nodes %s take jobs again",
		}}, true
	case a.StateChange.EndDrain != "":
		return stateChange{what: "undraining", opens: true, write: (*slurmcache.Cache).UndrainNotedLater, told: eventText{
			reason: "Undrained", action: "SetState", one: "Slurm node %s takes jobs again", many: "%d Slurm nodes %s take jobs again", text: ": " + a.StateChange.EndDrain,
		}}, true
	case a.StateChange.Revive:
		return stateChange{what: "reviving", opens: true, write: (*slurmcache.Cache).ReviveLater, told: eventText{
			reason: "Revived", action: "SetState", one: "Slurm node %s is no longer down", many: "%d Slurm nodes %s are no longer down",
			text: ": another slurmd has registered for each",
		}}, true
	}
	return stateChange{}, false
}

// refused returns until when a change is not to be tried again; zero when it may.
func (r *reconciler) refused(s *scope, c stateChange) (until time.Time) {
	return r.memory.retries.until(client.ObjectKeyFromObject(s.pod), c.what+c.reason, r.Clock.Now())
}

// setState drains and undrains the Slurm node, or lets it be used again. It does not wait for Slurm, or the workers of a silent cluster
// would hold up those of all others. Nothing else is decided about the worker until the result of the change is known, which wakes it.
func (r *reconciler) setState(ctx context.Context, s *scope) (changes bool) {
	c, ok := stateChangeOf(s)
	if !ok {
		return false
	}
	key := client.ObjectKeyFromObject(s.pod)
	if until := r.refused(s, c); !until.IsZero() {
		s.action.Again = workerpod.Sooner(s.action.Again, until)
		return true
	}
	logger := log.FromContext(ctx).WithValues("node", s.node, "change", c.what, "reason", c.reason)
	r.memory.pending.begin(key)
	settled := func() {} // a drain does not settle what was sent before it
	if c.opens {
		before := r.memory.announced.opens(key, s.worker.Announced, r.Clock.Now())
		settled = func() { r.memory.announced.settled(key, before) }
	}
	c.write(s.cache, ctx, s.node, s.worker.Announced.Add(workerplan.AnnouncementTimeout), func(err error) {
		ended := r.Clock.Now()
		if err == nil {
			ended = s.cache.Written() // on a busy machine Slurm may have been asked again before we learn that
		}
		if errors.Is(err, slurmcache.ErrClosed) {
			r.memory.changed(key, ended, "") // the cluster goes, or another Slurm cache follows
			return
		}
		if errors.Is(err, slurmcache.ErrHeld) {
			settled()
			r.memory.changed(key, ended, "") // the next answer shows it
			logger.Info("Left a Slurm node as it is, because somebody else has a say in it")
			return
		}
		if err != nil {
			r.memory.changed(key, ended, c.what+c.reason)
			logger.Error(err, "Could not change the state of a Slurm node")
			return
		}
		settled()
		r.memory.changed(key, ended, "")
		logger.Info("Changed the state of a Slurm node")
		r.events.add(s.set, s.pod, s.node, c.told)
	})
	return true
}
