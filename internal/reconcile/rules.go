// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"

	"go.opentelemetry.io/otel/trace"

	"github.com/coxswain-hpc/coxswain/internal/observe/tracing"
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
			tracing.KeyRuleQuestion.String(r.Question), tracing.KeyRuleWhen.String(r.Name),
			tracing.KeyRuleThen.String(r.Does), tracing.KeyRuleWhy.String(r.Why),
		))
	}
}
