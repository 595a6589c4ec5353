// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"context"
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

// Options are what links have in common; the zero value is useful.
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
	// Transport does the HTTP; the default is one for each link.
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

// A Link is the link to one Slurm cluster. It is safe for concurrent use.
//
// It has eight parts that run on their own, each with its own state. One polls the nodes, one the slurmctlds, and one writes. One asks for
// the jobs on nodes, one for the states of jobs whose end somebody waits for, one whether partitions may go, one whether nodes may go, and one
// counts the jobs in these. A ninth has what an exporter asks for. They share the connection, the view and the limit of the load on slurmrestd.
type Link struct {
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

// New returns a link that does nothing until Run. Its snapshot is empty and Stale.
func New(key Key, config Config, options Options) (*Link, error) {
	return newLink(key, config, options, newHub(), newMetrics())
}

func newLink(key Key, config Config, options Options, hub *hub, metrics *metrics) (*Link, error) {
	options = options.withDefaults()
	l := &Link{
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

// Set follows a change of endpoint or key. The snapshot stays; the link asks again at once when something failed
// before or the endpoint changed.
func (l *Link) Set(config Config) error {
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

// observe counts a call, unless the link has ended and its metrics are gone, and notes how long slurmrestd worked for it.
func (l *Link) observe(o rest.Observation) {
	select {
	case <-l.done:
	default:
		l.metrics.observe(l.key, o)
	}
	l.connection.worked(o)
}

// Key is the link's name.
func (l *Link) Key() Key { return l.key }

// Snapshot returns what is known now; it is never nil.
func (l *Link) Snapshot() *Snapshot { return l.view.snapshot() }

// Run polls and writes until the context ends; it returns when everything it started has ended. A link runs once.
func (l *Link) Run(ctx context.Context) {
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
