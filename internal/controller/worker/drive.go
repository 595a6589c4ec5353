// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/coxswain-hpc/coxswain/internal/controller/worker/workerplan"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
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
		s.action.Deletion.Delete = false
		s.action.Shown.Message, s.action.Shown.Why = "waiting for Slurm to confirm that nothing runs on it", "a job may have started meanwhile"
		s.action.Again = workerpod.Sooner(s.action.Again, now.Add(10*time.Second))
		return false
	}
	r.readSnapshot(ctx, s, snapshot)
	if s.decide(ctx); !s.action.Deletion.Delete {
		s.action.Again = workerpod.Sooner(s.action.Again, now.Add(time.Second))
		return false
	}
	if granted, again := s.cache.Spend(now, 1); granted == 0 {
		s.action.Deletion.Delete = false
		s.action.Shown.Message += "; waiting, because the limit of deletions per minute is reached in this cluster"
		s.action.Shown.Why = "what is wrong with a decision shows in a few workers, not in all"
		s.action.Again = workerpod.Sooner(s.action.Again, again)
		return false
	}
	return true
}

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
