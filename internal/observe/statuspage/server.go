// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package statuspage

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
)

// Root is the path of the page of all clusters; all others are below.
const Root = "/ui"

const (
	// updateInterval is the time between two updates of a page, at least.
	updateInterval = 500 * time.Millisecond
	// ageInterval is how often a page that is looked at is rendered although nothing has happened: states get older.
	ageInterval = 5 * time.Second
	// aliveInterval is how often something is written to a browser that has nothing to get, so that one that is gone is noticed.
	aliveInterval = 15 * time.Second
	// writeTimeout is how long a browser may take to read an update.
	writeTimeout = 5 * time.Second
	// maxStreamTime is how long a browser is served before it has to show its token again.
	maxStreamTime = 10 * time.Minute
	// maxStreams is the number of browsers that are served at the same time.
	maxStreams = 64
	// unusedTimeout is how long the last version of a page is kept that is not looked at.
	unusedTimeout = time.Minute
	// queueInterval is how often Slurm is asked for the jobs of a cluster whose page is followed.
	queueInterval = 10 * time.Second
	// inverseShare bounds the share of time for which pages are rendered: one tenth of a processor.
	inverseShare = 10
)

// Source gathers the facts of pages.
type Source interface {
	// Clusters are the facts of all clusters, by namespace and name.
	Clusters(ctx context.Context) ([]Facts, error)
	// Cluster are the facts of a cluster, and whether it exists.
	Cluster(ctx context.Context, key slurmcache.Key) (f Facts, found bool, err error)
	// Jobs asks Slurm for the jobs of a cluster, and returns what is known afterwards, also when Slurm does not answer.
	Jobs(ctx context.Context, key slurmcache.Key) (slurmcache.JobRecords, error)
}

// Server serves the pages. It is an http.Handler, and a Runnable of a manager: updates are sent while it runs.
type Server struct {
	source    Source
	caches    *slurmcache.Registry
	templates templates
	limits    limits
	// epoch distinguishes the versions of this process from those of others.
	epoch string
	// changed has a value when something has changed that pages are made of.
	changed chan struct{}
	// entered has a value when a browser has begun to follow a page.
	entered chan struct{}
	// done is closed when streams have to end.
	done chan struct{}

	mu     sync.Mutex
	closed bool
	boards map[slurmcache.Key]*board
	made   int
	open   int
	ended  sync.WaitGroup
}

// limits are the limits of a server; tests have shorter ones.
type limits struct {
	update, age, alive, write, stream, unused, queue time.Duration
	streams                                          int
}

// New returns a server of what the source gathers, which follows the changes of the Slurm caches.
func New(source Source, caches *slurmcache.Registry) *Server {
	return &Server{
		source: source, caches: caches, templates: newTemplates(), epoch: strconv.FormatInt(time.Now().UnixNano(), 36),
		limits: limits{
			update: updateInterval, age: ageInterval, alive: aliveInterval, write: writeTimeout, stream: maxStreamTime, unused: unusedTimeout, queue: queueInterval,
			streams: maxStreams,
		},
		changed: make(chan struct{}, 1), entered: make(chan struct{}, 1), done: make(chan struct{}), boards: map[slurmcache.Key]*board{},
	}
}

// Wake has the pages made again, because something that they show has changed.
func (s *Server) Wake() {
	select {
	case s.changed <- struct{}{}:
	default: // it is known already
	}
}

// NeedLeaderElection returns false: every replica serves its pages.
func (s *Server) NeedLeaderElection() bool { return false }

// Start renders the pages that are looked at whenever something changes. When the context ends it ends all streams, and waits for
// them.
func (s *Server) Start(ctx context.Context) error {
	defer s.close()
	var asking sync.WaitGroup
	defer asking.Wait()
	asking.Go(func() { s.askForJobs(ctx) })
	changes := s.caches.Subscribe()
	defer changes.Close()
	older := time.NewTicker(s.limits.age)
	defer older.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-changes.Ready():
			changes.Take() // which node it is shows when the page is rendered
		case <-s.changed:
		case <-older.C:
		}
		began := time.Now()
		s.refreshWatched(ctx)
		pause := time.NewTimer(max(s.limits.update, (inverseShare-1)*time.Since(began)))
		select {
		case <-ctx.Done():
			pause.Stop()
			return nil
		case <-pause.C:
		}
	}
}

// close ends all streams, and refuses new ones.
func (s *Server) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	close(s.done)
	s.ended.Wait()
}

// refreshWatched renders the pages that are looked at, and forgets the others.
func (s *Server) refreshWatched(ctx context.Context) {
	var watched []slurmcache.Key
	s.mu.Lock()
	for key, b := range s.boards {
		switch {
		case b.streams > 0:
			watched = append(watched, key)
		case time.Since(b.used) > s.limits.unused:
			delete(s.boards, key)
		}
	}
	s.mu.Unlock()
	for _, key := range watched {
		if _, err := s.refresh(ctx, key, 0); err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "Could not render a status page", "cluster", key.String())
		}
	}
}

// refresh renders the page of a cluster, unless that was done within maxAge. The board is nil if there is no such cluster.
func (s *Server) refresh(ctx context.Context, key slurmcache.Key, maxAge time.Duration) (*board, error) {
	s.mu.Lock()
	b, known := s.boards[key]
	if known {
		b.used = time.Now()
	} else {
		s.made++
		b = newBoard(fmt.Sprintf("%s.%d", s.epoch, s.made))
	}
	s.mu.Unlock()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.current != nil && time.Since(b.refreshed) < maxAge {
		return b, nil
	}
	facts, found, err := s.source.Cluster(ctx, key)
	if err != nil {
		return nil, err
	}
	if !found {
		if known {
			s.forget(key, b)
		}
		return nil, nil //nolint:nilnil // there is no such cluster
	}
	facts.Queue = b.queue
	if err := b.refresh(s.templates, facts); err != nil {
		return nil, err
	}
	b.refreshed = time.Now()
	if !known {
		return s.remember(key, b), nil
	}
	return b, nil
}

// remember keeps a board, unless another one has just been made.
func (s *Server) remember(key slurmcache.Key, b *board) *board {
	s.mu.Lock()
	defer s.mu.Unlock()
	if other, ok := s.boards[key]; ok {
		return other
	}
	b.used = time.Now()
	s.boards[key] = b
	return b
}

// forget drops the board of a cluster that is gone. The caller holds the board's lock.
func (s *Server) forget(key slurmcache.Key, b *board) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.boards[key] == b {
		delete(s.boards, key)
	}
	if !b.gone {
		b.gone = true
		b.wake()
	}
}

// enter begins a stream that follows a board; leave ends it. It is refused when there are too many, or the server ends.
func (s *Server) enter(b *board) (leave func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.open >= s.limits.streams {
		return nil, false
	}
	s.open++
	b.streams++
	s.ended.Add(1)
	select {
	case s.entered <- struct{}{}:
	default: // it is known already
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.open--
		b.streams--
		s.ended.Done()
	}, true
}
