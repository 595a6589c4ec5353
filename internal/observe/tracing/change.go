// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// changeTimeout is how long after a change passes are part of its trace. Later ones, such as for a change of a node in Slurm weeks
	// later, are traces of their own with a link to it: no trace grows for ever.
	changeTimeout = 10 * time.Minute
	// maxAgeOfNew is how old an object may be that is taken for a new one when it is seen first. Older ones were there before this process.
	maxAgeOfNew = time.Minute
)

// name is the name of an object that changes.
type name struct {
	kind schema.GroupKind
	types.NamespacedName
}

// change is the last generation of an object that was seen.
type change struct {
	name
	generation int64
	// first is the context of the first span of its trace; until is when passes stop being part of it: zero if they never were.
	first trace.SpanContext
	until time.Time
}

// changes remembers the generations of objects, so that a new one is seen.
type changes struct {
	tracer trace.Tracer
	clock  clock.PassiveClock

	mu    sync.Mutex
	known map[name]known
}

type known struct {
	uid types.UID
	change
}

func newChanges(tracer trace.Tracer, clock clock.PassiveClock) *changes {
	return &changes{tracer: tracer, clock: clock, known: map[name]known{}}
}

// note returns the change of a generation of an object. The first call for a change makes the first span of its trace,
// unless the generation is part of another change.
//
//	the object was                                   then
//	seen with this generation                        nothing is new
//	seen with another one, or is less than 1 min old  a change begins now
//	there before this process                        it is no change: it is not known when it was made
//
// What is part of another change, as what a SlurmCluster composes, begins none.
func (c *changes) note(kind schema.GroupKind, obj client.Object, part bool) change {
	key := name{kind, client.ObjectKeyFromObject(obj)}
	c.mu.Lock()
	defer c.mu.Unlock()
	before, seen := c.known[key]
	seen = seen && before.uid == obj.GetUID()
	if seen && before.generation == obj.GetGeneration() {
		return before.change
	}
	ids, now := of(obj.GetUID(), obj.GetGeneration()), c.clock.Now()
	next := change{name: key, generation: obj.GetGeneration()}
	next.first = trace.NewSpanContext(trace.SpanContextConfig{TraceID: ids.trace, SpanID: ids.span, TraceFlags: trace.FlagsSampled, Remote: true})
	if isNew := now.Sub(obj.GetCreationTimestamp().Time) <= maxAgeOfNew; !part && (seen || isNew) {
		_, span := c.tracer.Start(context.WithValue(context.Background(), wantedKey{}, ids), "change "+kind.Kind, trace.WithAttributes(next.attributes()...))
		next.first, next.until = span.SpanContext().WithRemote(true), now.Add(changeTimeout)
		span.End()
	}
	c.known[key] = known{obj.GetUID(), next}
	return next
}

// open reports whether passes are part of the trace of a change now.
func (c *changes) open(of change) bool { return c.clock.Now().Before(of.until) }

// forget forgets an object that no longer exists.
func (c *changes) forget(kind schema.GroupKind, key types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.known, name{kind, key})
}
