// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package statuspage

import (
	"context"
	"sync"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/queue"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
)

// askForJobs asks Slurm for the jobs of those clusters whose pages are being followed, until the context ends. Nothing else on the pages
// calls Slurm, and nothing is asked while no page is followed.
func (s *Server) askForJobs(ctx context.Context) {
	var asking sync.WaitGroup
	defer asking.Wait()
	tick := time.NewTicker(s.limits.queue)
	defer tick.Stop()
	for {
		for key, b := range s.toAsk() {
			asking.Go(func() { s.askFor(ctx, key, b) })
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-s.entered:
		}
	}
}

// toAsk returns the pages that are followed, and for which Slurm is not being asked and was not asked a moment ago: a user who loads
// a page again and again does not have Slurm asked each time.
func (s *Server) toAsk() map[slurmcache.Key]*board {
	out := map[slurmcache.Key]*board{}
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, b := range s.boards {
		if b.streams > 0 && !b.asking && time.Since(b.asked) >= s.limits.queue/2 {
			b.asking, b.asked = true, time.Now()
			out[key] = b
		}
	}
	return out
}

// askFor asks for the jobs of a cluster, and has its page rendered with the answer.
func (s *Server) askFor(ctx context.Context, key slurmcache.Key, b *board) {
	records, err := s.source.Jobs(ctx, key)
	next := Queue{Taken: records.Taken, Missing: records.Missing, Summary: queue.Summarize(records.Jobs, records.Tasks)}
	if err != nil {
		next.Why = err.Error()
	}
	b.mu.Lock()
	b.queue = next
	b.mu.Unlock()
	s.mu.Lock()
	b.asking = false
	s.mu.Unlock()
	s.Wake()
}
