// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// Kubernetes makes a transport that makes a span of each write to the API server in a pass. Reads come from caches.
func (t *Tracing) Kubernetes(next http.RoundTripper) http.RoundTripper {
	return &kubernetes{
		tracer: t.tracer, next: next,
		resolver: &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")},
	}
}

type kubernetes struct {
	tracer   trace.Tracer
	next     http.RoundTripper
	resolver *request.RequestInfoFactory
}

// RoundTrip is part of http.RoundTripper.
func (k *kubernetes) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet || !trace.SpanFromContext(r.Context()).IsRecording() {
		return k.next.RoundTrip(r)
	}
	info, err := k.resolver.NewRequestInfo(r)
	if err != nil || !info.IsResourceRequest {
		return k.next.RoundTrip(r)
	}
	verb := info.Verb
	if r.Header.Get("Content-Type") == string(types.ApplyYAMLPatchType) || r.Header.Get("Content-Type") == string(types.ApplyCBORPatchType) {
		verb = "apply"
	}
	resource := info.Resource
	attributes := []attribute.KeyValue{keyVerb.String(verb), keyGroup.String(info.APIGroup), keyResource.String(resource), keyNamespace.String(info.Namespace), keyName.String(info.Name)}
	if info.Subresource != "" {
		resource += "/" + info.Subresource
		attributes = append(attributes, keySubresource.String(info.Subresource))
	}
	ctx, span := k.tracer.Start(r.Context(), verb+" "+resource, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attributes...))
	defer span.End()
	response, err := k.next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		span.SetStatus(codes.Error, err.Error())
		return response, err
	}
	answered(span, response.StatusCode)
	return response, nil
}

// answered records the status of an answer.
func answered(span trace.Span, status int) {
	span.SetAttributes(keyStatus.Int(status))
	if status >= http.StatusBadRequest {
		span.SetStatus(codes.Error, http.StatusText(status))
	}
}
