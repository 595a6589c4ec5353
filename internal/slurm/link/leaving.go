// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

// leaving finds out whether a job still needs partitions, or nodes, that are to go. It asks after polls of the nodes, while one of them
// is needed or may be.
type leaving struct {
	nodes      bool // and not partitions
	connection *connection
	view       *view
	load       *loadLimit
	publish    func(nodes ...string)
	wake       // slurmctld can be asked

	mu     sync.Mutex
	wanted []string
	free   map[string]bool
	again  time.Time // slurmctld is not asked before

	// What follows is of poll alone.
	search  *jobSearch // that the limit of the load has interrupted; nil: none
	holders []int64    // jobs for which partitions stayed
}

func newLeaving(nodes bool, connection *connection, view *view, load *loadLimit, publish func(nodes ...string)) *leaving {
	return &leaving{nodes: nodes, connection: connection, view: view, load: load, publish: publish, wake: newWake(), free: map[string]bool{}}
}

// LeavePartitions sets which partitions are to go when no job needs them. Their lines in slurm.conf take no new jobs. The list takes
// the place of the one before. When a partition may go, subscribers get a Change of Slurmctld.
func (l *Link) LeavePartitions(names ...string) {
	l.leaving.leave(names)
	l.needs.leave(names)
}

// FreePartitions are the partitions of LeavePartitions that no job needs, by slurmctld's answer. They stay so while they are among
// those of LeavePartitions: nobody can submit a job to them.
func (l *Link) FreePartitions() map[string]bool { return l.leaving.freed() }

// LeaveNodes sets which nodes that have lines in slurm.conf are to go when no job runs there or names them. Their lines drain them. It
// is as with LeavePartitions, but that a job may name such a node at any time.
func (l *Link) LeaveNodes(names ...string) { l.leavingNodes.leave(names) }

// FreeNodes are the nodes of LeaveNodes without a known job, as with FreePartitions.
func (l *Link) FreeNodes() map[string]bool { return l.leavingNodes.freed() }

func (p *leaving) freed() map[string]bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.free)
}

func (p *leaving) leave(names []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if slices.Equal(p.wanted, names) {
		return
	}
	p.wanted, p.again = slices.Clone(names), time.Time{}
	for name := range p.free {
		if !slices.Contains(names, name) {
			delete(p.free, name)
		}
	}
	p.poke()
}

// open are the partitions that are not known to be free to go, if slurmctld may be asked again.
func (p *leaving) open(now time.Time) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.Before(p.again) {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(p.wanted), func(name string) bool { return p.free[name] })
}

// run asks after polls of the nodes until the context ends.
func (p *leaving) run(ctx context.Context) { p.wake.run(ctx, p.poll) }

// leavingInterval is how long after an answer slurmctld is asked again.
const leavingInterval = 10 * time.Second

func (p *leaving) poll(ctx context.Context) {
	now := p.view.now()
	names, client := p.open(now), p.connection.get()
	if len(names) == 0 || p.view.stored().Trust != Fresh {
		p.search = nil
		return
	}
	if !p.search.goesOn(client, names) {
		if p.load.wait(now, aboutDaemons, true) > 0 {
			return
		}
		if !p.nodes {
			free, err := p.deletePartitions(ctx, client, names)
			refusal, ok := errors.AsType[*rest.Error](err)
			if !ok || refusal.Kind != rest.Refused || refusal.Code != 0 {
				p.note(client, free)
				return
			}
		}
		p.search = newJobSearch(client, names) // for nodes, and with a slurmrestd before 26.05
	}
	free, err := p.goOn(ctx, p.search)
	if errors.Is(err, errLoadLimit) {
		return
	}
	p.search = nil
	p.note(client, free)
}

// took counts what a question cost.
func (p *leaving) took(about subject, call string) {
	p.load.take(p.view.now(), about, p.connection.lastWork(call))
}

// note keeps which partitions may go, and publishes to subscribers when there is one. Answers of any endpoint but the current one are
// of no use.
func (p *leaving) note(client *rest.Client, free []string) {
	if client != p.connection.get() {
		return
	}
	p.mu.Lock()
	p.again = p.view.now().Add(leavingInterval)
	for _, name := range free {
		if slices.Contains(p.wanted, name) {
			p.free[name] = true
		}
	}
	p.mu.Unlock()
	if len(free) > 0 {
		p.publish(Slurmctld)
	}
}

// deletePartitions has slurmctld delete partitions; it deletes only those that no job needs. So nothing can happen between the question
// and the end of the partition, and the question costs no list of jobs.
func (p *leaving) deletePartitions(ctx context.Context, client *rest.Client, names []string) (free []string, err error) {
	for _, name := range names {
		err := client.DeletePartition(ctx, name)
		p.took(aboutDaemons, deletePartition)
		refusal, refused := errors.AsType[*rest.Error](err)
		switch {
		case err == nil, errors.Is(err, rest.Absent):
			free = append(free, name)
		case !refused || refusal.Code != rest.CodePartitionInUse:
			return free, err
		}
	}
	return free, nil
}
