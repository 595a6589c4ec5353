// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcache

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
	"github.com/coxswain-hpc/coxswain/internal/slurm/need"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

// A slurmctld that reads its configuration ends jobs that wait and name a node that it has no record of (26.05.5, 24.11.5). So a record
// that a job may name is not deleted while a configuration is on its way to slurmctld, and none is sent until such a node has registered again.

// Configuration is what slurmctld is to read.
type Configuration struct {
	Digest string
	// Loaded reports whether slurmctld has read it. Where slurmctld does not report what it has read, that is assumed readTimeout later.
	Loaded func(Daemons) bool
}

const (
	// readTimeout is how long a configuration is taken to be on its way to a slurmctld that does not report which one it has read. New workers
	// wait a little longer for the deletion of records (nodeset.MaxRecordDeleteTime).
	readTimeout = 80 * time.Second
	// maxAbsence is how long a configuration waits for nodes of which it is not known whether jobs name them.
	maxAbsence = 5 * time.Minute
)

// ErrNamed is for a record that was not deleted because a job names its node, or may do so.
var ErrNamed = errors.New("a job names the node, or may do so; slurmctld would end it if it read its configuration without the record")

// readings keep deletions of records and readings of the configuration apart.
type readings struct {
	view    *view
	daemons func() Daemons
	publish func(nodes ...string)

	mu     sync.Mutex
	wanted Configuration
	since  time.Time // when that was first set
	// overtaken is when a configuration was replaced before slurmctld had read it: it may still be on its way.
	overtaken time.Time
	// absent are nodes whose records were deleted in order to be made anew, with when. It is zero while they are being deleted.
	absent map[string]time.Time
	// refused is when jobs named a node that was to be deleted, after they were looked at.
	refused time.Time
}

func newReadings(view *view, daemons func() Daemons, publish func(nodes ...string)) *readings {
	return &readings{view: view, daemons: daemons, publish: publish, absent: map[string]time.Time{}}
}

// Configure sets what slurmctld is to read, before it may. From then until it has, Renew deletes no record of a node that a job may
// name. It returns the nodes that were deleted before and have not registered since, as Absent does.
func (l *Cache) Configure(c Configuration) []string {
	r := l.readings
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := r.view.now(); r.since.IsZero() || r.wanted.Digest != c.Digest {
		if !r.since.IsZero() && !r.read() {
			r.overtaken = now
		}
		r.since = now
	}
	r.wanted = c
	return slices.Sorted(maps.Keys(r.absent))
}

// read reports whether slurmctld has read what it is to read. The caller holds the lock.
func (r *readings) read() bool {
	now := r.view.now()
	if r.since.IsZero() || !r.overtaken.IsZero() && now.Sub(r.overtaken) <= readTimeout {
		return false
	}
	d := r.daemons()
	return r.wanted.Loaded(d) || d.Release != "" && !d.Loaded && now.Sub(r.since) > readTimeout
}

// Renew deletes records of nodes, which their next slurmds make anew. While slurmctld may be about to read its configuration, those
// that a job may name stay, with ErrNamed.
func (l *Cache) Renew(ctx context.Context, nodes []string) Failures {
	if !l.readings.begin(nodes) {
		return l.ForgetUnnamed(ctx, nodes)
	}
	failures := l.Forget(ctx, nodes)
	l.readings.end(nodes, failures)
	return failures
}

// ForgetUnnamed deletes records of nodes, but for those that a job may name: they stay, with ErrNamed. After that, and when Slurm did
// not answer, the jobs are not looked at for leavingInterval, and all stay.
func (l *Cache) ForgetUnnamed(ctx context.Context, nodes []string) Failures {
	var unnamed []string
	if l.readings.mayAsk() {
		var err error
		if unnamed, err = l.Unnamed(ctx, nodes); err != nil {
			l.readings.refuse() // slurmrestd may be slow
			return all(nodes, err)
		}
	}
	named := slices.DeleteFunc(slices.Clone(nodes), func(name string) bool { return slices.Contains(unnamed, name) })
	failures := all(named, ErrNamed)
	if len(named) > 0 {
		l.readings.refuse()
	}
	if len(unnamed) > 0 {
		maps.Copy(failures, l.Forget(ctx, unnamed))
	}
	return failures
}

// mayAsk reports whether it is time to look at the jobs again.
func (r *readings) mayAsk() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refused.IsZero() || r.view.now().Sub(r.refused) >= leavingInterval
}

// refuse notes that jobs may name nodes.
func (r *readings) refuse() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := r.view.now(); now.Sub(r.refused) >= leavingInterval {
		r.refused = now
	}
}

// begin notes that records are being deleted, unless slurmctld may be about to read its configuration.
func (r *readings) begin(nodes []string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.read() {
		return false
	}
	for _, name := range nodes {
		r.absent[name] = time.Time{}
	}
	return true
}

// end notes which records were deleted. After a failure the node may be gone as well.
func (r *readings) end(nodes []string, failures Failures) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range nodes {
		if _, begun := r.absent[name]; begun {
			r.absent[name] = r.view.now()
		}
		if held := failures[name]; held != nil && rest.NodesBusy(held) {
			delete(r.absent, name)
		}
	}
}

// notice forgets the nodes that have registered, and publishes to subscribers when there are some.
func (r *readings) notice() {
	r.mu.Lock()
	before, snapshot := len(r.absent), r.view.snapshot()
	maps.DeleteFunc(r.absent, func(name string, at time.Time) bool {
		_, exists := snapshot.Node(name)
		return !at.IsZero() && exists == node.Yes && snapshot.Trust == Fresh && snapshot.Taken.After(at) && !snapshot.Deleted(name)
	})
	noticed := len(r.absent) < before
	r.mu.Unlock()
	if noticed {
		r.publish(Slurmctld)
	}
}

// Absent are the nodes whose records were deleted in order to be made anew, and which have not registered since.
func (l *Cache) Absent() []string {
	l.readings.mu.Lock()
	defer l.readings.mu.Unlock()
	return slices.Sorted(maps.Keys(l.readings.absent))
}

// Endangered are the absent nodes named by jobs that a slurmctld would end if it read its configuration now. Where that is not known
// they are all that have been absent for less than maxAbsence; the error is the reason, if there is one.
func (l *Cache) Endangered(ctx context.Context) ([]string, error) {
	absent := l.Absent()
	if len(absent) == 0 {
		return nil, nil
	}
	named, known, err := need.NamedNodes(ctx, l.connection.get(), need.Unfinished, maxJobsLookedAt)
	if err != nil {
		err = fmt.Errorf("asking Slurm cluster %s which jobs name %s: %w", l.key, hostlist.Compress(absent), err)
	}
	r, now := l.readings, l.view.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(absent, func(name string) bool {
		at, still := r.absent[name]
		over := known && !named.Contains(name) || !known && !at.IsZero() && now.Sub(at) > maxAbsence
		if over && !at.IsZero() { // no job can name it before it has registered
			delete(r.absent, name)
		}
		return over || !still
	}), err
}
