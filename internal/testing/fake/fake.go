// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fake is a slurmctld in memory behind the REST interface of a slurmrestd, for tests, faults and benchmarks.
//
// Register nodes, submit jobs, move the clock; ask it over HTTP what a real one would be asked. Answers have the shapes, statuses
// and oddities of slurmrestd 24.11.5 or 26.05.5, as measured. An unknown node is a 200 with an error of number 0. A hostlist with
// one unknown name changes the nodes before it in the order of names. Jobs that did not change come as an empty list with
// last_update 0. And 24.11 does not list nodes that changed when partitions did not. What the fake emits is checked against the
// published OpenAPI documents.
//
// What nodes, jobs and reservations do is compared with real ones, step by step, by package test/compare.
//
// Time passes only by Options.Now, and nothing happens between two requests: jobs start and end, in their order, when the next request
// comes. There is no goroutine.
package fake

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Releases of Slurm that can be played.
const (
	Slurm2411 = "24.11.5"
	Slurm2605 = "26.05.5"
)

// Options are which Slurm to play.
type Options struct {
	// Release is Slurm2605, the default, or Slurm2411.
	Release string
	// Cluster is the ClusterName; the default is "fake".
	Cluster string
	// Key is the HS256 key that tokens are checked with. Without one every token is good and stands for its user, if it is a JSON web
	// token, or for slurm.
	Key []byte
	// Now is the clock; the default is time.Now.
	Now func() time.Time
	// Completing is how long a node stays COMPLETING after a job ended.
	Completing time.Duration
	// Memory makes memory a resource of jobs, as with SelectTypeParameters=CR_Core_Memory, which is Slurm's default: a
	// node whose jobs are suspended is MIXED then, since their memory stays theirs. With CR_Core it is IDLE.
	Memory bool
	// Compact leaves out the white space of answers, as SLURMRESTD_JSON=compact does.
	Compact bool
	// UnknownUsers are users that slurmctld cannot look up.
	UnknownUsers []string
	// Script returns how long the script of a job that comes over HTTP runs, and its exit code. Without it, and where it returns 0, such a
	// job runs until Finish, Fail or Cancel ends it, or its limit. It must not call the Slurm.
	Script func(Job) (runs time.Duration, exitCode int64)
	// Nameless is true if slurmrestd has no names of users, as in a container without the accounts of the jail.
	Nameless bool
	// Accounting is true if slurmdbd keeps the records of jobs.
	Accounting bool
}

// Slurm is one cluster. It is an http.Handler and safe for concurrent use.
type Slurm struct {
	options  Options
	versions []string

	mu    sync.Mutex
	nodes map[string]*node
	order []string // names in order of registration, which is Slurm's order
	jobs  map[int64]*job
	// forgotten are jobs that only slurmdbd has any more.
	forgotten []job

	reservations    map[string]*Reservation
	lastReservation int

	preemptedBy map[int64][]int64 // the jobs that are suspended for another one

	pending  []int64
	events   eventQueue
	lastJob  int64
	clock    time.Time     // up to here events have happened
	behind   time.Duration // of slurmctld's clock
	down     bool
	nodeTime time.Time // last change of a node
	jobTime  time.Time // last change of a job
	partTime time.Time // last change of a partition
	// partitions are the states of partitions that are not UP.
	partitions map[string]string
	resvTime   time.Time // last change of a reservation
	booted     time.Time
	key        []byte
	// parameters are SlurmctldParameters, and controllers the answers to ping; nil is one that is up.
	parameters  []string
	controllers []Controller
	fault       func(*http.Request) *Fault
	// keepsRunning is set by KeepRunning.
	keepsRunning bool
	counters     Counters
	writes       []Write
}

// New starts an empty cluster.
func New(options Options) *Slurm {
	if options.Release == "" {
		options.Release = Slurm2605
	}
	if options.Cluster == "" {
		options.Cluster = "fake"
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	s := &Slurm{options: options, key: options.Key, nodes: map[string]*node{}, jobs: map[int64]*job{}}
	s.reservations, s.preemptedBy, s.partitions = map[string]*Reservation{}, map[int64][]int64{}, map[string]string{}
	s.versions = []string{"v0.0.42", "v0.0.43", "v0.0.44", "v0.0.45"}
	if s.old() {
		s.versions = []string{"v0.0.40", "v0.0.41", "v0.0.42"}
	}
	now := options.Now()
	s.clock, s.nodeTime, s.jobTime, s.partTime, s.resvTime, s.booted = now, now, now, now, now, now
	return s
}

// old reports whether this is a Slurm before 25.05.
func (s *Slurm) old() bool { return strings.HasPrefix(s.options.Release, "24.") }

// lock takes the lock and lets happen what is due; call it as "defer s.lock()()".
func (s *Slurm) lock() (unlock func()) {
	s.mu.Lock()
	if !s.down {
		s.advance(s.now())
	}
	return s.mu.Unlock
}

// Stop lets slurmctld go down; slurmrestd goes on answering that it cannot reach it. Nothing happens in a stopped Slurm.
func (s *Slurm) Stop() {
	defer s.lock()()
	s.down = true
}

// now is the time by slurmctld's clock. The caller holds the lock.
func (s *Slurm) now() time.Time { return s.options.Now().Add(-s.behind) }

// StepBack lets slurmctld's clock show that much less from now on, as when another slurmctld takes over on a host whose clock is behind.
// Until its clock is there again, slurmctld answers that nothing changed since any time that it gave before.
func (s *Slurm) StepBack(d time.Duration) {
	defer s.lock()()
	s.behind += d
	s.clock = s.clock.Add(-d)
	s.nodeTime, s.jobTime, s.partTime, s.resvTime, s.booted = s.clock, s.clock, s.clock, s.clock, s.clock
}

// Start lets slurmctld come up again. Without its state it knows neither nodes nor jobs: dynamic nodes come back when
// they are registered again.
func (s *Slurm) Start(keepState bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = false
	if !keepState {
		s.nodes, s.order = map[string]*node{}, nil
		s.jobs, s.pending, s.events, s.lastJob = map[int64]*job{}, nil, nil, 0
		s.reservations, s.preemptedBy, s.partitions = map[string]*Reservation{}, map[int64][]int64{}, map[string]string{}
		s.clock = s.now()
	}
	s.miss()
	s.advance(s.now())
	s.registerAll()
	s.nodeTime, s.jobTime, s.partTime, s.resvTime, s.booted = s.clock, s.clock, s.clock, s.clock, s.clock
}

// SetKey changes the key that tokens are checked with, as a rotation of the Secret and a restart do.
func (s *Slurm) SetKey(key []byte) {
	defer s.lock()()
	s.key = slices.Clone(key)
}

// A Fault is what goes wrong with one request. Fields combine: a Hold comes first, then Latency, then the rest.
type Fault struct {
	// Hold keeps the request until it is closed, or the client is gone.
	Hold <-chan struct{}
	// Latency is added to the answer, in real time.
	Latency time.Duration
	// Apply carries the request out although the answer is replaced: the reply is lost.
	Apply bool
	// Cut closes the connection without an answer.
	Cut bool
	// Status and Body replace the answer.
	Status int
	Body   string
	// Error is put into errors[] of an answer with status 200.
	Error *Error
	// KeepNode reports whether a list shows a node; the others are missing although the answer looks whole.
	KeepNode func(name string) bool
}

// Error is an entry of errors[].
type Error struct {
	Number      int
	Description string
	Text        string
}

// SetFault lets a function look at every request and return what goes wrong with it; nil, from the function or instead of
// it, is nothing.
func (s *Slurm) SetFault(fault func(*http.Request) *Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = fault
}

// Counters count requests and bytes.
type Counters struct {
	// Calls by method and resource: "GET nodes", "POST nodes", "DELETE node", "GET ping" …
	Calls map[string]int
	// Unchanged are answers with status 304.
	Unchanged int
	// Received and Sent are bytes of bodies, as the fake sees them.
	Received int64
	Sent     int64
}

// Counters returns the counts since the start, or since ResetCounters.
func (s *Slurm) Counters() Counters {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.counters
	c.Calls = maps.Clone(c.Calls)
	return c
}

// ResetCounters sets all counts to zero and forgets the writes.
func (s *Slurm) ResetCounters() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counters, s.writes = Counters{}, nil
}

// A Write is a change that came over HTTP and was carried out at least in part.
type Write struct {
	Time time.Time
	User string
	// Verb is "update", "delete", "create", "reconfigure", "reserve" or "unreserve", "submit" or
	// "cancel".
	Verb string
	// Name is that of the reservation, or of the job.
	Name string
	// Nodes is the hostlist expression as it came.
	Nodes   string
	State   string
	Reason  string
	Comment *string
}

// Writes returns the writes since the start, or since ResetCounters.
func (s *Slurm) Writes() []Write {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.writes)
}
