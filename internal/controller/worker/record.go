// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/coxswain-hpc/coxswain/internal/link"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
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
	var parts []link.Update
	if record.Topology != nil {
		parts = append(parts, link.Update{Topology: record.Topology})
	}
	if record.Features != nil || record.Active != nil {
		parts = append(parts, link.Update{Features: record.Features, FeaturesActive: record.Active})
	}
	if record.Comment != nil {
		parts = append(parts, link.Update{Comment: record.Comment})
	}
	w := r.memory.records(client.ObjectKeyFromObject(s.pod), record.String(), len(parts))
	r.writeParts(ctx, s.link, s.node, w, parts)
}

// writeParts writes one part after the other: two of one node would not leave together, nor let those of others join.
func (r *reconciler) writeParts(ctx context.Context, l *link.Link, node string, w *writing, parts []link.Update) {
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
