// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package exporter

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
)

// A Source is what an exporter asks; a slurmcache.Cache is one.
type Source interface {
	Snapshot() *slurmcache.Snapshot
	CollectJobs(ctx context.Context) (slurmcache.JobRecords, error)
	CollectAccountingJobs(ctx context.Context, lookback time.Duration) (slurmcache.JobRecords, error)
	CollectDiag(ctx context.Context) (diag rest.Diag, taken time.Time, err error)
}

// Options are how an exporter collects.
type Options struct {
	// Interval is the time between the beginnings of two collections.
	Interval time.Duration
	// MaxInflight is how many collections of one kind may run at a time; at least 1.
	MaxInflight int
	// Lookback is how far back jobs are read from slurmdbd; zero reads them from slurmctld.
	Lookback time.Duration
	Text     TextOptions
	Log      logr.Logger
}

// An Exporter collects what a cluster is doing, and serves it. It is safe for concurrent use.
type Exporter struct {
	source     Source
	options    Options
	collectors []*collector
	own        *own

	mu       sync.Mutex
	history  *History
	ahead    time.Duration           // of slurmctld's clock
	comments map[string]node.Comment // by node
}

// New returns an exporter that collects nothing until Run.
func New(source Source, options Options) *Exporter {
	e := &Exporter{source: source, options: options, history: NewHistory()}
	e.collectors = []*collector{
		newCollector("nodes", options.MaxInflight, e.collectNodes),
		newCollector("jobs", options.MaxInflight, e.collectJobs),
		newCollector("diag", options.MaxInflight, e.collectController),
	}
	e.own = newOwn(e)
	return e
}

// Run collects at once, and then in intervals, until the context ends. It returns when every collection has ended.
func (e *Exporter) Run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	tick := time.NewTicker(e.options.Interval)
	defer tick.Stop()
	for {
		e.begin(ctx, &running)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// begin starts a collection of each kind, unless as many run as may.
func (e *Exporter) begin(ctx context.Context, running *sync.WaitGroup) {
	for _, c := range e.collectors {
		release, free := c.begin()
		if !free {
			continue
		}
		running.Go(func() {
			defer release()
			began := time.Now()
			last, _, _ := c.last()
			part, taken, err := c.collect(ctx, last)
			if ctx.Err() != nil {
				return
			}
			if c.end(part, taken, time.Since(began), err) {
				if err != nil {
					e.options.Log.Error(err, "Collecting did not succeed; what was collected before stays", "collector", c.name)
				} else {
					e.options.Log.Info("Collecting succeeds", "collector", c.name)
				}
			}
		})
	}
}

var errNoAnswer = errors.New("slurmrestd has not answered yet")

// collectNodes turns the last list of nodes into text. A snapshot that is not Fresh is an error.
func (e *Exporter) collectNodes(_ context.Context, last *text) (part *text, taken time.Time, err error) {
	s := e.source.Snapshot()
	switch {
	case s.Taken.IsZero() && s.Why == "":
		return nil, time.Time{}, errNoAnswer
	case s.Trust != slurmcache.Fresh:
		return nil, time.Time{}, fmt.Errorf("the nodes are %s: %s", s.Trust, s.Why)
	}
	nodes := sorted(s)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.history.Observe(s.Taken.Add(s.Ahead), nodes)
	e.ahead = s.Ahead
	e.comments = make(map[string]node.Comment, len(nodes))
	for _, n := range nodes {
		if c, ok := node.ParseComment(n.Comment); ok {
			e.comments[n.Name] = c
		}
	}
	part = after(last, e.options.Text)
	part.nodes(nodes, e.comments, e.history)
	return part, s.Taken, nil
}

// collectJobs turns all jobs into text.
func (e *Exporter) collectJobs(ctx context.Context, last *text) (part *text, taken time.Time, err error) {
	records, err := e.records(ctx)
	if records.Taken.IsZero() {
		if err == nil {
			err = errNoAnswer
		}
		return nil, time.Time{}, err
	}
	e.mu.Lock()
	comments, ahead := e.comments, e.ahead
	e.mu.Unlock()
	part = after(last, e.options.Text)
	part.jobs(records.Taken.Add(ahead), records.Jobs, comments)
	part.missing = records.Missing
	return part, records.Taken, err
}

// records asks for the jobs of slurmctld or of slurmdbd.
func (e *Exporter) records(ctx context.Context) (slurmcache.JobRecords, error) {
	if e.options.Lookback > 0 {
		return e.source.CollectAccountingJobs(ctx, e.options.Lookback)
	}
	return e.source.CollectJobs(ctx)
}

// collectController asks slurmctld about itself.
func (e *Exporter) collectController(ctx context.Context, last *text) (part *text, taken time.Time, err error) {
	diag, taken, err := e.source.CollectDiag(ctx)
	if taken.IsZero() {
		if err == nil {
			err = errNoAnswer
		}
		return nil, time.Time{}, err
	}
	part = after(last, e.options.Text)
	part.controller(diag)
	return part, taken, err
}

// minUnhealthyAge is the age up to which nothing that is shown counts as too old, however short the interval is: the limit of
// slurmrestd's load lets a slow one be asked less often.
const minUnhealthyAge = 90 * time.Second

// Healthy returns what is wrong: an error when what it shows of the nodes, of the jobs or of slurmctld is older than three intervals, and
// than 90 seconds.
func (e *Exporter) Healthy() error {
	now, allowed := time.Now(), max(3*e.options.Interval, minUnhealthyAge)
	var all []error
	for _, c := range e.collectors {
		if _, taken, err := c.last(); taken.IsZero() || now.Sub(taken) > allowed {
			if err == nil {
				err = errNoAnswer
			}
			all = append(all, fmt.Errorf("%s: %w", c.name, err))
		}
	}
	return errors.Join(all...)
}
