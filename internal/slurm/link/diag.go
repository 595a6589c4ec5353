// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"context"
	"sync"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

// A diagRecorder asks slurmctld for its diagnostics, within a limit of its own: the cost is not taken from the limit of jobs.
type diagRecorder struct {
	connection *connection
	view       *view
	load       *loadLimit

	mu     sync.Mutex   // held by the goroutine that asks
	client *rest.Client // the source of what is known
	last   rest.Diag
	taken  time.Time // when last was asked for; zero: it has not been answered
}

// CollectDiag asks slurmctld for its diagnostics, with who has called it how often. It returns what is known afterwards, and when Slurm
// was asked for that; zero when it has not answered yet. If the limit of slurmrestd's load does not allow to ask yet, that is what was
// known before.
func (l *Link) CollectDiag(ctx context.Context) (rest.Diag, time.Time, error) {
	return l.diag.collect(ctx)
}

func (r *diagRecorder) collect(ctx context.Context) (rest.Diag, time.Time, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	client, asked := r.connection.get(), r.view.now()
	if client != r.client { // another slurmrestd may be one of another cluster
		r.client, r.last, r.taken = client, rest.Diag{}, time.Time{}
	}
	if r.load.wait(asked, aboutController, true) > 0 {
		return r.last, r.taken, nil
	}
	diag, err := client.Diag(ctx)
	r.load.take(r.view.now(), aboutController, r.connection.lastWork(getDiag))
	if err == nil {
		r.last, r.taken = diag, asked
	}
	return r.last, r.taken, err
}
