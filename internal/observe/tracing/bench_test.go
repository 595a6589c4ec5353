// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

// BenchmarkPass is what a pass that does nothing costs, with traces and without. With traces, most of it is the fake client, which is no cache.
func BenchmarkPass(b *testing.B) {
	next := reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) { return reconcile.Result{}, nil })
	on := New(sdktrace.NewBatchSpanProcessor(tracetest.NewNoopExporter()), resource.Empty(), clock.RealClock{})
	defer func() { _ = on.Close() }()
	for name, traces := range map[string]*Tracing{"off": nil, "on": on} {
		b.Run(name, func(b *testing.B) {
			reader, _ := cluster(b, noon().Add(-time.Hour))
			r := traces.Reconciler("Controller", &slinkyv1beta1.Controller{}, reader, next)
			req := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "slurm", Name: "alone"}}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := r.Reconcile(b.Context(), req); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
