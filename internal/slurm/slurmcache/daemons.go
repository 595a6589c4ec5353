// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcache

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

// Slurmctld is the Node of a Change about the slurmctlds. No node has that name.
const Slurmctld = "/slurmctld"

// Daemons is the last answer of the slurmctlds of a cluster.
type Daemons struct {
	// Asked is when they were asked, by the cache's clock; zero when they never were.
	Asked time.Time
	// Controllers are all slurmctlds, the primary first, as slurmrestd reaches them. Nil while slurmrestd does not answer.
	Controllers []rest.Controller
	// Release is that of slurmctld where it reports it, else that of slurmrestd; empty while neither answers.
	Release string
	// Parameters are the SlurmctldParameters that slurmctld has loaded, if Loaded.
	Parameters []string
	Loaded     bool
	// Why is why Parameters are not known, in one line.
	Why string
}

// equal compares all but the time.
func (d Daemons) equal(other Daemons) bool {
	return slices.Equal(d.Controllers, other.Controllers) && d.Release == other.Release && d.Loaded == other.Loaded &&
		slices.Equal(d.Parameters, other.Parameters) && d.Why == other.Why
}

// Interest is what a caller needs to know of the slurmctlds.
type Interest struct {
	// Settled reports whether an answer leaves nothing to wait for. Until then slurmctld is asked twice a second.
	Settled func(Daemons) bool
	// Watch goes on asking which of them answer, as often as the nodes are polled, for a cluster with backups.
	Watch bool
}

// ctldTimeout bounds a request to the slurmctlds.
const ctldTimeout = 10 * time.Second

// askSlurmctlds pings the slurmctlds and asks the active one what it has loaded. With an error nothing is known.
func askSlurmctlds(ctx context.Context, client *rest.Client, now time.Time) (Daemons, error) {
	limited, cancel := context.WithTimeout(ctx, ctldTimeout)
	defer cancel()
	d := Daemons{Asked: now}
	controllers, meta, err := client.Controllers(limited)
	if err != nil {
		d.Why = "slurmrestd does not answer"
		return d, err
	}
	d.Controllers, d.Release = controllers, meta.Release
	if !slices.ContainsFunc(controllers, func(c rest.Controller) bool { return c.Responding }) {
		d.Why = "no slurmctld answers"
		return d, errors.New(d.Why)
	}
	conf, err := client.Conf(limited)
	switch {
	case errors.Is(err, rest.Refused):
		d.Why = "slurmrestd " + meta.Release + " does not tell what slurmctld has loaded"
		return d, nil
	case err != nil:
		d.Why = "slurmctld does not say what it has loaded"
		return d, err
	}
	d.Release, d.Parameters, d.Loaded = cmp.Or(conf.Release, d.Release), conf.SlurmctldParameters, true
	return d, nil
}

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
func (l *Cache) CollectDiag(ctx context.Context) (rest.Diag, time.Time, error) {
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
