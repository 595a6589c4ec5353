// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package slurmcache keeps what Slurm clusters report, in one Cache for each cluster, and writes to them.
//
// A Cache asks slurmrestd every second what changed since its last answer, keeps the nodes in an immutable Snapshot
// and sends subscribers the names of nodes that changed. Its requests take at most a twentieth of slurmrestd's time, and
// more for a while after a write, and when somebody begins to wait: then it asks sooner. Its limits
// are in limits.go and deletion_budget.go.
//
// A Cache has six parts that run on their own: node poller, job follower, followed jobs, leaving partitions, slurmctld poller and writer.
//
// Every Snapshot has a Trust. Decisions that destroy something need Fresh, and only a Fresh snapshot can answer that Slurm does not
// have a node, or what state it is in; all others answer Unknown.
//
// Writes of the same change to several nodes within 50 ms leave as one call with a hostlist, and every caller learns what became of its
// own nodes.
//
// The Registry maps a Controller's namespace and name to its Cache and follows changes of endpoint and key; the snapshot
// survives them. Caches start and end with Set, Delete and Close, which wait for their goroutines. Nothing is kept when
// the process ends: after a restart the first answer makes the first snapshot.
package slurmcache

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"
	"k8s.io/utils/clock"

	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
	"github.com/coxswain-hpc/coxswain/internal/slurm/token"
)

// Config is where a cluster's slurmrestd is and how to authenticate to it.
type Config struct {
	// Endpoint is like "http://slurm-restapi.default:6820".
	Endpoint string
	// Issuer makes the tokens; they have to be those of Slurm's user slurm or root.
	Issuer token.Issuer
	// Checks makes the tokens of ChecksUser, who submits the jobs of checks and does nothing else; nil for none.
	Checks token.Issuer
}

// Options are what caches have in common; the zero value is useful.
type Options struct {
	// Clock gives the time and makes timers; the default is the real one.
	Clock clock.Clock
	// Interval is the time between the end of an answer and the next poll; the default is one second.
	Interval time.Duration
	// Window is how long a write waits for others of the same change; the default is 50 ms.
	Window time.Duration
	// Budget is how many destructive actions a cluster may see within a minute; the default is half of its nodes, and
	// never less than 20.
	Budget int
	// Transport does the HTTP; the default is one for each cache.
	Transport http.RoundTripper
	// Trace makes spans of requests; nil makes none.
	Trace Trace
}

func (o Options) withDefaults() Options {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Interval <= 0 {
		o.Interval = time.Second
	}
	if o.Window <= 0 {
		o.Window = 50 * time.Millisecond
	}
	return o
}

// A Cache is that of one Slurm cluster. It is safe for concurrent use.
//
// It has eight parts that run on their own, each with its own state. One polls the nodes, one the slurmctlds, and one writes. One asks for
// the jobs on nodes, one for the states of jobs whose end somebody waits for, one whether partitions may go, one whether nodes may go, and one
// counts the jobs in these. A ninth has what an exporter asks for. They share the connection, the view and the limit of the load on slurmrestd.
type Cache struct {
	key     Key
	options Options
	hub     *hub
	metrics *metrics
	done    chan struct{} // closed when Run ends

	connection *connection
	retries    *retryLimit
	view       *view
	deletions  *deletionBudget

	nodes    *nodePoller
	jobs     *jobFollower
	followed *followedJobs
	ctlds    *ctldPoller
	leaving  *leaving
	// leavingNodes is the same for nodes.
	leavingNodes *leaving
	needs        *leavingJobs
	readings     *readings
	records      *jobRecorder
	accounted    *accountingRecorder
	diag         *diagRecorder
	*writer
}

// New returns a cache that does nothing until Run. Its snapshot is empty and Stale.
func New(key Key, config Config, options Options) (*Cache, error) {
	return newCache(key, config, options, newHub(), newMetrics())
}

func newCache(key Key, config Config, options Options, hub *hub, metrics *metrics) (*Cache, error) {
	options = options.withDefaults()
	l := &Cache{
		key: key, options: options, hub: hub, metrics: metrics, done: make(chan struct{}),
		connection: &connection{}, retries: newRetryLimit(options.Clock), view: newView(options.Clock),
	}
	l.deletions = &deletionBudget{limit: options.Budget, view: l.view}
	publish := func(nodes ...string) { hub.publish(key, nodes...) }
	load := &loadLimit{}
	l.ctlds = newCtldPoller(options, l.connection, load, publish)
	l.jobs = newJobFollower(l.connection, l.view, load, publish)
	l.followed = newFollowedJobs(l.connection, l.view, load, publish)
	l.leaving = newLeaving(false, l.connection, l.view, load, publish)
	l.leavingNodes = newLeaving(true, l.connection, l.view, load, publish)
	l.readings = newReadings(l.view, l.Daemons, publish)
	l.records = newJobRecorder(l.connection, l.view, load)
	l.needs = newLeavingJobs(l.connection, l.view, load, l.records, publish)
	l.accounted = newAccountingRecorder(l.connection, l.view, load)
	l.diag = &diagRecorder{connection: l.connection, view: l.view, load: load}
	l.nodes = newNodePoller(options.Interval, l.connection, l.view, load, l.done)
	l.nodes.publish, l.nodes.trustChanged = publish, l.ctlds.poke
	l.ctlds.replaced = func() {
		l.nodes.relist()
		l.jobs.relist()
	}
	l.nodes.answered = func() {
		l.jobs.poke()
		l.followed.poke()
		l.leaving.poke()
		l.needs.poke()
		l.leavingNodes.poke()
		l.readings.notice()
		l.records.expire()
		l.needs.records.expire()
	}
	w := newWriter(options, l.connection, l.view, l.nodes, load, l.done)
	w.publish = publish
	w.requested = func() { metrics.requests.WithLabelValues(key.Namespace, key.Name).Inc() }
	w.batched = func(nodes int) { metrics.batch.WithLabelValues(key.Namespace, key.Name).Observe(float64(nodes)) }
	if options.Trace != nil {
		w.trace(func(ctx context.Context, callers []trace.SpanContext) (context.Context, func()) {
			return options.Trace.Write(ctx, key.String(), callers)
		})
	}
	l.writer = w
	if err := l.Set(config); err != nil {
		return nil, err
	}
	return l, nil
}

// Set follows a change of endpoint or key. The snapshot stays; the cache asks again at once when something failed
// before or the endpoint changed.
func (l *Cache) Set(config Config) error {
	if config.Issuer == nil {
		return fmt.Errorf("linking to %s: there is no token issuer", l.key)
	}
	if !l.connection.leadsTo(config.Endpoint) {
		client, err := rest.NewClient(config.Endpoint, &l.connection.issuer, rest.Options{
			Transport: l.options.Transport, Now: l.options.Clock.Now, Timeout: callTimeout,
			Observe: l.observe, Retry: l.retries.allow, Wrap: l.options.wrap(l.key),
		})
		if err != nil {
			return fmt.Errorf("linking to %s: %w", l.key, err)
		}
		l.connection.issuer.current.Store(&config.Issuer) // before anybody asks with it
		l.nodes.restart(func() { l.connection.replace(config.Endpoint, client) })
		l.ctlds.poke()
	}
	l.connection.issuer.current.Store(&config.Issuer)
	checks := &config.Checks
	if config.Checks == nil {
		checks = nil
	}
	l.connection.checks.Store(checks)
	if l.view.stored().Trust != Fresh {
		l.nodes.poke()
	}
	return nil
}

// observe counts a call, unless the cache has ended and its metrics are gone, and notes how long slurmrestd worked for it.
func (l *Cache) observe(o rest.Observation) {
	select {
	case <-l.done:
	default:
		l.metrics.observe(l.key, o)
	}
	l.connection.worked(o)
}

// Key is the cache's name.
func (l *Cache) Key() Key { return l.key }

// Snapshot returns what is known now; it is never nil.
func (l *Cache) Snapshot() *Snapshot { return l.view.snapshot() }

// Run polls and writes until the context ends; it returns when everything it started has ended. A cache runs once.
func (l *Cache) Run(ctx context.Context) {
	var running sync.WaitGroup
	defer func() {
		close(l.done)
		running.Wait()
		l.connection.get().Close()
	}()
	running.Go(func() { l.runBatchers(ctx) })
	running.Go(func() { l.ctlds.run(ctx) })
	running.Go(func() { l.jobs.run(ctx) })
	running.Go(func() { l.followed.run(ctx) })
	running.Go(func() { l.leaving.run(ctx) })
	running.Go(func() { l.needs.run(ctx) })
	running.Go(func() { l.leavingNodes.run(ctx) })
	l.nodes.run(ctx)
}

// A Registry has the cache of every cluster and owns their goroutines. It is a prometheus.Collector of their state.
type Registry struct {
	options Options
	hub     *hub
	metrics *metrics

	mu     sync.Mutex
	closed bool
	caches map[Key]*running
}

// running is a cache with its goroutine.
type running struct {
	cache *Cache
	stop  context.CancelFunc
	ended chan struct{}
}

// NewRegistry returns an empty registry. Close it to end its goroutines.
func NewRegistry(options Options) *Registry {
	return &Registry{options: options.withDefaults(), hub: newHub(), metrics: newMetrics(), caches: map[Key]*running{}}
}

// Set makes the cache of a cluster and starts it, or lets the one that exists follow a new endpoint or issuer. Doing it
// again with the same configuration costs nothing.
func (r *Registry) Set(key Key, config Config) (*Cache, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, errors.New("linking to " + key.String() + ": the registry is closed")
	}
	if known, ok := r.caches[key]; ok {
		return known.cache, known.cache.Set(config)
	}
	cache, err := newCache(key, config, r.options, r.hub, r.metrics)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	run := &running{cache: cache, stop: stop, ended: make(chan struct{})}
	r.caches[key] = run
	go func() {
		defer close(run.ended)
		cache.Run(ctx)
	}()
	r.hub.publish(key, "")
	return cache, nil
}

// Get returns the cache of a cluster.
func (r *Registry) Get(key Key) (*Cache, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	run, ok := r.caches[key]
	if !ok {
		return nil, false
	}
	return run.cache, true
}

// All returns all caches.
func (r *Registry) All() map[Key]*Cache {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make(map[Key]*Cache, len(r.caches))
	for key, run := range r.caches {
		out[key] = run.cache
	}
	return out
}

// Delete ends the cache of a cluster, if there is one, and waits until it has ended. Writes under way fail with ErrClosed.
func (r *Registry) Delete(key Key) {
	r.mu.Lock()
	run, ok := r.caches[key]
	delete(r.caches, key)
	r.mu.Unlock()
	if !ok {
		return
	}
	run.stop()
	<-run.ended
	r.metrics.forget(key)
	r.hub.publish(key, "")
}

// Subscribe returns a subscription to the changes of all caches, those to come included.
func (r *Registry) Subscribe() *Subscription { return r.hub.subscribe() }

// Start keeps the registry open until the context ends, then closes it; it makes the registry a Runnable of a manager.
func (r *Registry) Start(ctx context.Context) error {
	<-ctx.Done()
	r.Close()
	return nil
}

// Close ends all caches and waits for them. Nothing can be set afterwards.
func (r *Registry) Close() {
	r.mu.Lock()
	r.closed = true
	caches := r.caches
	r.caches = map[Key]*running{}
	r.mu.Unlock()
	for _, run := range caches {
		run.stop()
	}
	for _, run := range caches {
		<-run.ended
	}
}
