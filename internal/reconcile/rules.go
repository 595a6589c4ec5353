// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/coxswain-hpc/coxswain/internal/problem/rule"
)

// TraceRules adds an event to the span of the pass for each rule that has decided in it, where passes are traced.
func TraceRules(ctx context.Context, rules []rule.Fired) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	for _, r := range rules {
		span.AddEvent("rule", trace.WithAttributes(
			attribute.String("coxswain.rule.question", r.Question), attribute.String("coxswain.rule.when", r.Name),
			attribute.String("coxswain.rule.then", r.Does), attribute.String("coxswain.rule.why", r.Why),
		))
	}
}
