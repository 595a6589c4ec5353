// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr/funcr"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/observe/tracing"
	coxswain "github.com/coxswain-hpc/coxswain/internal/operator"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/golden"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

// attributes returns the attributes of a span, as text.
func attributes(s tracetest.SpanStub) map[string]string {
	out := map[string]string{}
	for _, a := range s.Attributes {
		out[string(a.Key)] = a.Value.String()
	}
	return out
}

// about returns in one line what a span is about.
func about(s tracetest.SpanStub) string {
	a := attributes(s)
	line := s.Name
	if name := a["k8s.object.name"]; name != "" {
		line += " " + name
	}
	if status := a["http.response.status_code"]; status != "" {
		line += " " + status
	}
	return line
}

// A change of a Controller is followed in one trace to the file and to slurmctld's word that it has it. A second look of a reconciler at
// the same changes nothing, so each line is there once however often it was looked.
func TestAChangeIsOneTrace(t *testing.T) {
	o := operator.StartCluster(t)
	spans := tracetest.NewInMemoryExporter()
	traces := tracing.New(sdktrace.NewSimpleSpanProcessor(spans), resource.Empty(), clock.RealClock{})
	var mu sync.Mutex
	var lines []string
	o.Adapt = func(base *ctrl.Options, options *coxswain.Options) {
		options.Traces = traces
		base.Logger = funcr.NewJSON(func(line string) {
			mu.Lock()
			defer mu.Unlock()
			lines = append(lines, line)
		}, funcr.Options{})
	}
	o.Restart()
	o.Settle()
	before := operator.Get[slinkyv1beta1.Controller](o, "demo")
	spans.Reset()
	operator.Change(o, "demo", func(c *slinkyv1beta1.Controller) { c.Spec.ExtraConf = "MinJobAge=77" })
	digest := sha256.Sum256(fmt.Appendf(nil, "%s/%d", before.UID, before.Generation+1))
	id := hex.EncodeToString(digest[:16])
	of := func() (out tracetest.SpanStubs) {
		for _, s := range spans.GetSpans() {
			if s.SpanContext.TraceID().String() == id {
				out = append(out, s)
			}
		}
		return out
	}
	apiserver.Eventually(t, func() error {
		if len(of()) == 0 {
			return errors.New("there is no trace " + id)
		}
		return nil
	})
	o.Settle()
	o.RunWorkloads() // kubelets start the pods anew
	o.Settle()
	all := of()
	parents := map[string]tracetest.SpanStub{}
	for _, s := range all {
		parents[s.SpanContext.SpanID().String()] = s
	}
	var got []string
	for _, s := range all {
		if attributes(s)["http.response.status_code"] == "409" {
			continue // somebody else was quicker, and the next pass does it
		}
		path := []string{about(s)}
		for p, ok := parents[s.Parent.SpanID().String()]; ok; p, ok = parents[p.Parent.SpanID().String()] {
			path = append(path, about(p))
		}
		slices.Reverse(path)
		got = append(got, strings.Join(path, " > "))
	}
	slices.Sort(got)
	golden.Check(t, "change.txt", []byte(strings.Join(slices.Compact(got), "\n")+"\n"))
	expectOneID(t, all, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(lines)
	}())
}

// A change of a SlurmCluster is followed through the component that it composes.
func TestAChangeOfASlurmClusterLeadsToTheFile(t *testing.T) {
	o := operator.Start(t)
	spans := tracetest.NewInMemoryExporter()
	o.Adapt = func(_ *ctrl.Options, options *coxswain.Options) {
		options.Traces = tracing.New(sdktrace.NewSimpleSpanProcessor(spans), resource.Empty(), clock.RealClock{})
	}
	o.Restart()
	operator.Create[nebiusv1alpha1.NodeSet](o, `{metadata: {name: w}, spec: {replicas: 1}}`)
	operator.Create[nebiusv1.SlurmCluster](o, maintained)
	operator.ExpectExists[corev1.ConfigMap](o, "demo-config")
	o.Settle()
	before := operator.Get[nebiusv1.SlurmCluster](o, "demo")
	spans.Reset()
	operator.Change(o, "demo", func(c *nebiusv1.SlurmCluster) { c.Spec.CustomSlurmConfig = "MinJobAge=77" })
	digest := sha256.Sum256(fmt.Appendf(nil, "%s/%d", before.UID, before.Generation+1))
	wanted := map[string]string{"apply controllers demo 200": "reconcile SlurmCluster demo", "apply configmaps demo-config 200": "reconcile Controller demo"}
	apiserver.Eventually(t, func() error {
		names, missing := map[string]string{}, maps.Clone(wanted)
		all := spans.GetSpans()
		for _, s := range all {
			names[s.SpanContext.SpanID().String()] = about(s)
		}
		for _, s := range all {
			if s.SpanContext.TraceID().String() == hex.EncodeToString(digest[:16]) && missing[about(s)] == names[s.Parent.SpanID().String()] {
				delete(missing, about(s))
			}
		}
		if len(missing) > 0 {
			return fmt.Errorf("the trace lacks %v", missing)
		}
		return nil
	})
}

// expectOneID checks that each pass has an identifier of its own. Each line that the pass has written to the log has it, together with
// the trace and the name of the object.
func expectOneID(t *testing.T, all tracetest.SpanStubs, lines []string) {
	t.Helper()
	passes := map[string]tracetest.SpanStub{}
	for _, s := range all {
		id := attributes(s)["coxswain.reconcile.id"]
		if !strings.HasPrefix(s.Name, "reconcile ") {
			continue
		}
		if _, twice := passes[id]; twice || id == "" {
			t.Errorf("the identifier of a pass is %q", id)
		}
		passes[id] = s
	}
	told := 0
	for _, line := range lines {
		var said map[string]any
		if err := json.Unmarshal([]byte(line), &said); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		id, inPass := said["reconcileID"].(string)
		if said["controller"] != nil && said["namespace"] != nil && !inPass {
			t.Errorf("a line about an object has no reconcileID: %s", line)
		}
		span, ok := passes[id]
		if !ok {
			continue
		}
		told++
		if said["traceID"] != span.SpanContext.TraceID().String() || said["name"] != attributes(span)["k8s.object.name"] {
			t.Errorf("a line of pass %s says something else than its span: %s", id, line)
		}
	}
	if told == 0 {
		t.Error("no line of the log belongs to a pass of the trace")
	}
}

// With traces and without, the operator writes the same.
func TestTracesWriteNothing(t *testing.T) {
	o := operator.StartCluster(t)
	spans := tracetest.NewInMemoryExporter()
	o.Adapt = func(_ *ctrl.Options, options *coxswain.Options) {
		options.Traces = tracing.New(sdktrace.NewSimpleSpanProcessor(spans), resource.Empty(), clock.RealClock{})
	}
	o.Settle()
	o.Writes.Reset()
	o.Restart()
	o.Settle()
	o.Writes.ExpectNone(t)
	if len(spans.GetSpans()) == 0 {
		t.Error("nothing was traced")
	}
	spans.Reset()
	o.ExpectNothingWritten(func() {})
	for _, s := range spans.GetSpans() {
		t.Errorf("at rest there is a span: %s", about(s))
	}
}
