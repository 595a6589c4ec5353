// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
	"github.com/coxswain-hpc/coxswain/internal/slurm/token"
)

// Config says where a cluster's slurmrestd is and how to be let in.
type Config struct {
	// Endpoint is like "http://slurm-restapi.default:6820".
	Endpoint string
	// Issuer makes the tokens; they have to be those of Slurm's user slurm or root.
	Issuer token.Issuer
}

// Options are what links have in common; the zero value is useful.
type Options struct {
	// Clock tells the time and makes timers; the default is the real one.
	Clock clock.Clock
	// Interval is the time between the end of an answer and the next question; the default is one second.
	Interval time.Duration
	// Window is how long a write waits for others that say the same; the default is 50 ms.
	Window time.Duration
	// Budget is how many destructive actions a cluster may see within a minute; the default is half of its nodes, and
	// never less than 20.
	Budget int
	// Transport does the HTTP; the default is one for each link.
	Transport http.RoundTripper
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

// callTimeout bounds one call to slurmrestd; listing 10,000 nodes took 2.2 s.
const callTimeout = time.Minute

// A Link is the link to one Slurm cluster. It is safe for concurrent use.
type Link struct {
	key     Key
	options Options
	hub     *hub
	metrics *metrics
	issuer  issuer
	done    chan struct{} // closed when Run ends
	// Writes about states and those about everything else go their own ways: a drain does not wait for comments.
	states     *batcher
	attributes *batcher
	purse      purse
	retries    retries

	snapshot atomic.Pointer[Snapshot]
	swap     sync.Mutex    // held by whoever makes another snapshot of this one
	wake     chan struct{} // somebody wants the next poll soon
	polled   chan struct{} // the jobs can be asked for

	polling chan struct{} // held by whoever asks for the nodes

	daemons  atomic.Pointer[Daemons]
	reminder chan struct{} // the slurmctlds are to be asked

	mu       sync.Mutex
	endpoint string
	client   *rest.Client
	since    time.Time // slurmctld's time of the last list; zero: ask for a whole one
	doubted  time.Time // when a list was last to be doubted
	polls    int       // that were begun
	answered int       // the number of the last one whose answer was waited for
	failed   error     // what became of that one
	ended    time.Time // and when
	failures int       // in a row
	lists    durations // of answers that were lists
	listWork durations // of slurmrestd for them
	shorts   durations // of answers that were "unchanged"
	talks    durations // of answers of the slurmctlds
	wanted   map[string]hostlist.Set
	interest *Interest // in the slurmctlds; nil: nobody's
	may      allowance
	spacing  spacing                  // of lists of nodes
	calms    spacing                  // of questions whether jobs are suspended
	hidden   time.Time                // when jobs were suspended last; zero: none is
	nextCalm time.Time                // when it may be asked again whether jobs are suspended
	work     map[string]time.Duration // of slurmrestd, for the last answer to each call
}

// issuer is the current token issuer; clients hold on to it across changes of key.
type issuer struct{ current atomic.Pointer[token.Issuer] }

// Token asks the current issuer.
func (i *issuer) Token(now time.Time) (string, time.Time, error) {
	return (*i.current.Load()).Token(now)
}

// New returns a link that does nothing until Run. Its snapshot is empty and Stale.
func New(key Key, config Config, options Options) (*Link, error) {
	return newLink(key, config, options, newHub(), newMetrics())
}

func newLink(key Key, config Config, options Options, hub *hub, metrics *metrics) (*Link, error) {
	l := &Link{
		key: key, options: options.withDefaults(), hub: hub, metrics: metrics,
		wanted: map[string]hostlist.Set{}, work: map[string]time.Duration{},
		spacing: newSpacing(), calms: newSpacing(),
		done: make(chan struct{}), wake: make(chan struct{}, 1), polled: make(chan struct{}, 1), polling: make(chan struct{}, 1), reminder: make(chan struct{}, 1),
	}
	l.daemons.Store(&Daemons{Why: "slurmctld has not been asked yet"})
	l.retries.clock = l.options.Clock
	l.states, l.attributes = l.newBatcher(), l.newBatcher()
	l.snapshot.Store(&Snapshot{Trust: Stale, Since: l.options.Clock.Now(), Why: "Slurm has not answered yet"})
	if err := l.Set(config); err != nil {
		return nil, err
	}
	return l, nil
}

// Set follows a change of endpoint or key. The snapshot stays; the next question is asked at once when something failed
// before or the endpoint is another one.
func (l *Link) Set(config Config) error {
	if config.Issuer == nil {
		return fmt.Errorf("linking to %s: there is no token issuer", l.key)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if config.Endpoint != l.endpoint {
		client, err := rest.NewClient(config.Endpoint, &l.issuer, rest.Options{
			Transport: l.options.Transport, Now: l.options.Clock.Now, Timeout: callTimeout,
			Observe: l.observe, Retry: l.retries.allow,
		})
		if err != nil {
			return fmt.Errorf("linking to %s: %w", l.key, err)
		}
		if l.client != nil {
			l.client.Close()
		}
		l.endpoint, l.client, l.since = config.Endpoint, client, time.Time{}
		l.poke()
		l.remind()
	}
	l.issuer.current.Store(&config.Issuer)
	if l.snapshot.Load().Trust != Fresh {
		l.poke()
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
	l.mu.Lock()
	defer l.mu.Unlock()
	l.work[o.Call] = o.Worked
}

// Key is the link's name.
func (l *Link) Key() Key { return l.key }

// Client returns the client in use, for calls that the link itself does not make. Another one takes its place when the
// endpoint changes.
func (l *Link) Client() *rest.Client {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.client
}

// Snapshot returns what is known now; it is never nil.
func (l *Link) Snapshot() *Snapshot { return l.snapshot.Load().at(l.options.Clock.Now()) }

// Subscribe returns a subscription to the changes of this link.
func (l *Link) Subscribe() *Subscription { return l.hub.subscribe(&l.key) }

// poke asks for a poll soon.
func (l *Link) poke() {
	select {
	case l.wake <- struct{}{}:
	default: // it is asked for already
	}
}

// wrote asks for what a write has changed, and for what follows from it.
func (l *Link) wrote() {
	l.hurries()
	l.poke()
}

// hurries says that somebody waits for what the nodes show.
func (l *Link) hurries() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.may.hurries(l.options.Clock.Now())
}

func (l *Link) newBatcher() *batcher {
	return &batcher{clock: l.options.Clock, window: l.options.Window, more: make(chan struct{}, 1), write: l.write, heed: l.heed, wrote: l.wrote}
}

// Run polls and writes until the context ends; it returns when everything it started has ended. A link runs once.
func (l *Link) Run(ctx context.Context) {
	var running sync.WaitGroup
	defer func() {
		close(l.done)
		running.Wait()
		l.Client().Close()
	}()
	running.Go(func() { l.states.run(ctx) })
	running.Go(func() { l.attributes.run(ctx) })
	running.Go(func() { l.attend(ctx) })
	running.Go(func() { l.followJobs(ctx) })
	for ctx.Err() == nil {
		select {
		case <-l.wake: // this poll is what was asked for
		default:
		}
		l.round(ctx)
		l.pause(ctx)
	}
}
