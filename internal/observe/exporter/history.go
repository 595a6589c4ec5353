// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package exporter

import (
	"maps"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

// A History is what has happened to nodes since the exporter runs. Slurm counts none of it.
type History struct {
	nodes map[string]*nodeHistory
}

// nodeHistory is what has happened to one node.
type nodeHistory struct {
	seen                    time.Time
	failed                  bool
	unavailableAt, drainsAt time.Time // since when; zero: it does not
	gpuSeconds              map[nodeState]float64
	fails                   map[failure]int
	unavailable, draining   durations
}

// nodeState is the part of a node's state by which metrics are divided.
type nodeState struct {
	base                        node.Word
	drain, maintenance, reserve bool
}

// failure is a state into which a node failed, and why.
type failure struct {
	nodeState
	reason string
}

const (
	// maxUnseen is how long a node may not be seen in between, and yet have been in the same state all the time.
	maxUnseen = 5 * time.Minute
	// maxReasons bounds the reasons of one node that are counted separately. They are free text, and some have a time in them.
	maxReasons = 32
	// otherReason stands for the others.
	otherReason = "(other)"
)

// NewHistory returns one without events.
func NewHistory() *History { return &History{nodes: map[string]*nodeHistory{}} }

func stateOf(s node.State) nodeState {
	return nodeState{base: s.Base(), drain: s.Has(node.Drain), maintenance: s.Has(node.Maintenance), reserve: s.Has(node.Reserved)}
}

// failed reports whether a node is down or is to get no jobs.
func (s nodeState) failed() bool { return s.base == node.Down || s.drain }

// unavailable reports whether nothing runs on a node, and nothing will.
func (s nodeState) unavailable() bool { return s.base == node.Down || s.base == node.Idle && s.drain }

// draining reports whether the last jobs run on a node.
func (s nodeState) draining() bool {
	return s.drain && (s.base == node.Allocated || s.base == node.Mixed)
}

// Observe records how the nodes are at a time, by Slurm's clock. Nodes that no longer exist are forgotten.
func (h *History) Observe(now time.Time, nodes []*rest.Node) {
	there := make(map[string]bool, len(nodes))
	for _, n := range nodes {
		there[n.Name] = true
		state := stateOf(node.Parse(n.State))
		known, ok := h.nodes[n.Name]
		if !ok {
			known = &nodeHistory{failed: state.failed()}
			h.nodes[n.Name] = known
		}
		known.observe(now, state, n)
	}
	maps.DeleteFunc(h.nodes, func(name string, _ *nodeHistory) bool { return !there[name] })
}

// observe records how a node is.
func (h *nodeHistory) observe(now time.Time, state nodeState, n *rest.Node) {
	since := now
	if h.seen.IsZero() { // how long that has been so, Slurm knows
		if !n.ReasonTime.IsZero() && n.ReasonTime.Before(now) {
			since = n.ReasonTime
		}
	} else {
		if n.ReasonTime.After(h.seen) && n.ReasonTime.Before(now) {
			since = n.ReasonTime
		}
		if passed := now.Sub(h.seen); passed > 0 && passed <= maxUnseen {
			h.addGPUs(state, passed.Seconds()*gpus(n))
		}
	}
	h.seen = now
	if state.failed() && !h.failed {
		h.fail(failure{state, n.Reason})
	}
	h.failed = state.failed()
	h.unavailable.follow(&h.unavailableAt, state.unavailable(), since, now)
	h.draining.follow(&h.drainsAt, state.draining(), since, now)
}

func (h *nodeHistory) addGPUs(state nodeState, seconds float64) {
	if seconds == 0 {
		return
	}
	if h.gpuSeconds == nil {
		h.gpuSeconds = map[nodeState]float64{}
	}
	h.gpuSeconds[state] += seconds
}

func (h *nodeHistory) fail(f failure) {
	if h.fails == nil {
		h.fails = map[failure]int{}
	}
	if _, known := h.fails[f]; !known && len(h.fails) >= maxReasons {
		f.reason = otherReason
	}
	h.fails[f]++
}

// buckets are the upper bounds of durations, in seconds: 30 s, 1 m, 5 m, 10 m, 30 m, 1 h, 2 h, 4 h, 8 h, 12 h, 1 d, 2 d, 3 d, 7 d, 14 d, 30 d.
//
//nolint:gochecknoglobals // a constant list
var buckets = [...]float64{30, 60, 300, 600, 1800, 3600, 7200, 14400, 28800, 43200, 86400, 172800, 259200, 604800, 1209600, 2592000}

// durations is a histogram of how long something lasted.
type durations struct {
	counts [len(buckets)]int // up to each bound
	count  int
	sum    float64
}

// follow begins and ends a period. A period begins at since, and ends now.
func (d *durations) follow(began *time.Time, holds bool, since, now time.Time) {
	switch {
	case holds && began.IsZero():
		*began = since
	case !holds && !began.IsZero():
		d.add(now.Sub(*began).Seconds())
		*began = time.Time{}
	}
}

func (d *durations) add(seconds float64) {
	for i, bound := range buckets {
		if seconds <= bound {
			d.counts[i]++
		}
	}
	d.count++
	d.sum += seconds
}
