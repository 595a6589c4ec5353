// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/coxswain-hpc/coxswain/internal/controller/worker/workerplan"
	"github.com/coxswain-hpc/coxswain/internal/reconcile/perkey"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
)

// writeRecord changes the record of the Slurm node, without waiting for it: each of a thousand new workers has its own comment, and a drain
// is not to wait until they are written. A failure holds up nothing else; the pod shows it, and it is tried again later.
func (r *reconciler) writeRecord(ctx context.Context, s *scope) {
	record := s.action.Record
	if record.Empty() {
		return
	}
	// Each part by itself: a refused part must not hold up the rest, and parts that are the same for many nodes leave as one call. Comments
	// never are, so they come last.
	var parts []slurmcache.Update
	if record.Topology != nil {
		parts = append(parts, slurmcache.Update{Topology: record.Topology})
	}
	if record.Features != nil || record.Active != nil {
		parts = append(parts, slurmcache.Update{Features: record.Features, FeaturesActive: record.Active})
	}
	if record.Comment != nil {
		parts = append(parts, slurmcache.Update{Comment: record.Comment})
	}
	w := r.memory.records.begin(client.ObjectKeyFromObject(s.pod), record.String(), len(parts))
	r.writeParts(ctx, s.cache, s.node, w, parts)
}

// writeParts writes one part after the other: two of one node would not leave together, nor let those of others join.
func (r *reconciler) writeParts(ctx context.Context, l *slurmcache.Cache, node string, w *writing, parts []slurmcache.Update) {
	l.UpdateLater(ctx, node, parts[0], func(err error) {
		w.told(err, r.Clock.Now())
		if len(parts) > 1 {
			r.writeParts(ctx, l, node, w, parts[1:])
		}
	})
}

// slurmMessage returns Slurm's message, without what differs from one call to the next.
func slurmMessage(err error) string {
	if refusal, ok := errors.AsType[*rest.Error](err); ok && refusal.Message != "" {
		return refusal.Message
	}
	return err.Error()
}

// recordWrites remember which updates of the records of Slurm nodes are on their way, and what became of the last one of each.
type recordWrites struct {
	pods perkey.Memory[types.NamespacedName, *recordWrite]
}

type recordWrite struct {
	// parts is how many parts of the record are being written, ended when the last of them arrived, and tried what became of them.
	parts int
	ended time.Time
	tried workerplan.Attempt
}

// writing is an update of a record that is on its way.
type writing struct {
	of       *recordWrites
	pod      types.NamespacedName
	write    *recordWrite // which may have been forgotten meanwhile
	update   string
	problems []error
}

// begin notes that an update of the record, of some parts, is on its way.
func (r *recordWrites) begin(pod types.NamespacedName, update string, parts int) *writing {
	w := &writing{of: r, pod: pod, update: update}
	r.pods.Change(pod, func(p **recordWrite) bool {
		if *p == nil {
			*p = &recordWrite{}
		}
		w.write, (*p).parts = *p, parts
		return true
	})
	return w
}

// told notes what became of a part.
func (w *writing) told(err error, now time.Time) {
	w.of.pods.Change(w.pod, func(p **recordWrite) bool {
		if *p == w.write {
			w.note(err, now)
		}
		return *p != nil
	})
}

func (w *writing) note(err error, now time.Time) {
	if err != nil {
		w.problems = append(w.problems, err)
	}
	if w.write.parts--; w.write.parts > 0 {
		return
	}
	w.write.ended, w.write.tried = now, workerplan.Attempt{Update: w.update, At: now}
	switch err := errors.Join(w.problems...); {
	case errors.Is(err, rest.Unavailable), errors.Is(err, slurmcache.ErrClosed):
		w.write.tried.Unanswered = true
	case err != nil:
		w.write.tried.Problem = slurmMessage(err)
	}
}

// recall fills in what became of the last update.
func (r *recordWrites) recall(pod types.NamespacedName, w *workerplan.Worker) {
	w.LastAttempt, w.Recording, w.Recorded = workerplan.Attempt{}, false, time.Time{}
	r.pods.Change(pod, func(p **recordWrite) bool {
		if *p != nil {
			w.LastAttempt, w.Recording, w.Recorded = (*p).tried, (*p).parts > 0, (*p).ended
		}
		return *p != nil
	})
}
