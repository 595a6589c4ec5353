// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package kubesim

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// request is a call taken apart.
type request struct {
	context     context.Context
	method      string
	contentType string
	query       url.Values
	body        []byte

	gvr         schema.GroupVersionResource
	namespace   string
	name        string
	subresource string

	labels   labels.Selector
	fields   fields.Selector
	metadata bool // only metadata is wanted
}

// RoundTrip answers a request as kube-apiserver does.
func (s *Server) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	response, err := s.answer(r)
	if err != nil {
		response = refusal(err)
	}
	response.Proto, response.ProtoMajor, response.ProtoMinor, response.Request = "HTTP/1.1", 1, 1, r
	response.Status = strconv.Itoa(response.StatusCode) + " " + http.StatusText(response.StatusCode)
	return response, nil
}

func (s *Server) answer(r *http.Request) (*http.Response, error) {
	call, err := parse(r)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	res := s.resources[call.gvr]
	if res == nil {
		return nil, apierrors.NewGenericServerResponse(http.StatusNotFound, call.method, call.gvr.GroupResource(), call.name, r.URL.Path, 0, true)
	}
	if call.method == http.MethodGet && call.query.Get("watch") != "" {
		return s.watch(call, res), nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case call.method == http.MethodGet && call.name == "":
		return reply(http.StatusOK, s.list(call, res)), nil
	case call.method == http.MethodGet:
		obj := res.objects[key{call.namespace, call.name}]
		if obj == nil {
			return nil, call.absent()
		}
		return reply(http.StatusOK, call.shown(obj)), nil
	}
	status, obj, err := s.write(call, res)
	if err != nil {
		return nil, err
	}
	return reply(status, call.shown(obj)), nil
}

func (r *request) absent() error { return apierrors.NewNotFound(r.gvr.GroupResource(), r.name) }

func (s *Server) list(r *request, res *resource) any {
	items := []any{}
	for _, obj := range res.sorted() {
		if r.selects(obj) {
			items = append(items, r.shown(obj))
		}
	}
	gvk := res.gvk
	if r.metadata {
		gvk = metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata")
	}
	return map[string]any{
		"apiVersion": gvk.GroupVersion().String(), "kind": gvk.Kind + "List",
		"metadata": map[string]any{"resourceVersion": strconv.FormatInt(s.version, 10)}, "items": items,
	}
}

// selects reports whether the request is about an object.
func (r *request) selects(obj *unstructured.Unstructured) bool {
	node, _, _ := unstructured.NestedString(obj.Object, "spec", "nodeName") // a field to select pods by
	return (r.namespace == "" || r.namespace == obj.GetNamespace()) && r.labels.Matches(labels.Set(obj.GetLabels())) &&
		r.fields.Matches(fields.Set{"metadata.name": obj.GetName(), "metadata.namespace": obj.GetNamespace(), "spec.nodeName": node})
}

// shown returns the object in the form that the client asked for.
func (r *request) shown(obj *unstructured.Unstructured) any {
	if !r.metadata {
		return obj.Object
	}
	return map[string]any{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": obj.Object["metadata"]}
}

func parse(r *http.Request) (*request, error) {
	call := &request{
		context: r.Context(), method: r.Method, query: r.URL.Query(), contentType: r.Header.Get("Content-Type"),
		metadata: strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata"),
	}
	if err := call.route(strings.Split(strings.Trim(r.URL.Path, "/"), "/")); err != nil {
		return nil, err
	}
	var err, also error
	call.labels, err = labels.Parse(call.query.Get("labelSelector"))
	call.fields, also = fields.ParseSelector(call.query.Get("fieldSelector"))
	if r.Body != nil {
		var unread error
		call.body, unread = io.ReadAll(r.Body)
		also = errors.Join(also, unread, r.Body.Close())
	}
	return call, errors.Join(err, also)
}

// route takes a path apart: /api/v1/namespaces/default/pods/w-0/status or /apis/apps/v1/deployments.
func (r *request) route(parts []string) error {
	whole := strings.Join(parts, "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		r.gvr.Version, parts = parts[1], parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		r.gvr.Group, r.gvr.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return fmt.Errorf("/%s is not served", whole)
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		r.namespace, parts = parts[1], parts[2:]
	}
	parts = append(parts, "", "")
	r.gvr.Resource, r.name, r.subresource = parts[0], parts[1], parts[2]
	evicts := r.subresource == "eviction" && r.gvr.Resource == "pods" && r.method == http.MethodPost
	if r.subresource != "" && r.subresource != "status" && !evicts {
		return fmt.Errorf("subresource %s of %s is not served", r.subresource, r.gvr.Resource)
	}
	return nil
}

func reply(status int, body any) *http.Response {
	text, err := json.Marshal(body)
	if err != nil {
		return refusal(err)
	}
	return &http.Response{
		StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(text)), ContentLength: int64(len(text)),
	}
}

// refusal returns an error in the form of Kubernetes.
func refusal(err error) *http.Response {
	status := apierrors.NewInternalError(err).Status()
	if known, ok := errors.AsType[*apierrors.StatusError](err); ok {
		status = known.Status()
	}
	status.Kind, status.APIVersion = "Status", "v1"
	response := reply(int(status.Code), status)
	if details := status.Details; details != nil && details.RetryAfterSeconds > 0 {
		response.Header.Set("Retry-After", strconv.Itoa(int(details.RetryAfterSeconds)))
	}
	return response
}

func uid(n int) types.UID {
	return types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", n))
}
