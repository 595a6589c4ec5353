// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"

	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/types"
)

// identifiers are the identifiers of the trace of a change, and of its first span.
type identifiers struct {
	trace trace.TraceID
	span  trace.SpanID
}

// of computes the identifiers of a generation of an object: parts of the SHA-256 digest of "UID/generation".
func of(uid types.UID, generation int64) identifiers {
	digest := sha256.Sum256(fmt.Appendf(nil, "%s/%d", uid, generation))
	var out identifiers
	copy(out.trace[:], digest[:])
	copy(out.span[:], digest[len(out.trace):])
	return out
}

// wantedKey is the key of the identifiers in the context of the first span of a change.
type wantedKey struct{}

// generator gives the first span of a change its identifiers, and every other one random ones.
type generator struct{}

// NewIDs is part of sdktrace.IDGenerator.
func (g generator) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	if wanted, ok := ctx.Value(wantedKey{}).(identifiers); ok {
		return wanted.trace, wanted.span
	}
	var id trace.TraceID
	for !id.IsValid() {
		_, _ = rand.Read(id[:]) // never fails
	}
	return id, g.NewSpanID(ctx, id)
}

// NewSpanID is part of sdktrace.IDGenerator.
func (generator) NewSpanID(context.Context, trace.TraceID) trace.SpanID {
	var id trace.SpanID
	for !id.IsValid() {
		_, _ = rand.Read(id[:])
	}
	return id
}
