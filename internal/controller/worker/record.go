// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"errors"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/coxswain-hpc/coxswain/internal/link"
	"github.com/coxswain-hpc/coxswain/internal/nodeset"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

// unavailable is how long to wait when Slurm did not answer to a write, unless it is heard of before.
const unavailable = 10 * time.Second

// writeRecord changes the record of the Slurm node. A failure keeps nothing else from being done: it is told on the pod, and
// tried again later.
func (r *reconciler) writeRecord(ctx context.Context, s *scope) {
	if s.action.Record.Empty() {
		return
	}
	problem := r.update(ctx, s)
	key, now := client.ObjectKeyFromObject(s.pod), r.Clock.Now()
	r.memory.wrote(key, now)
	if errors.Is(problem, rest.Unavailable) || errors.Is(problem, link.ErrClosed) || ctx.Err() != nil {
		s.action.Again = soonest(s.action.Again, now.Add(unavailable))
		return
	}
	attempt := nodeset.Attempt{Update: s.action.Record.String(), At: now}
	if problem != nil {
		attempt.Problem = words(problem)
		log.FromContext(ctx).Info("Slurm did not take what the record of a node is to say", "node", s.node, "why", problem.Error())
	}
	r.memory.tried(key, attempt)
	s.action.Again = soonest(s.action.Again, now.Add(time.Second)) // what Slurm says then shows what became of it
}

// update writes each part of the record by itself: what is refused must not hold up the rest, and parts that are the same
// for many nodes leave as one call, which comments never are.
func (r *reconciler) update(ctx context.Context, s *scope) error {
	record := s.action.Record
	var problems []error
	for _, part := range []link.Update{
		{Comment: record.Comment}, {Topology: record.Topology}, {Features: record.Features, FeaturesActive: record.Active},
	} {
		problems = append(problems, s.link.Update(ctx, []string{s.node}, part)[s.node])
	}
	return errors.Join(problems...)
}

// words are what Slurm said, without what differs from one call to the next.
func words(err error) string {
	if refusal, ok := errors.AsType[*rest.Error](err); ok && refusal.Message != "" {
		return refusal.Message
	}
	return err.Error()
}
