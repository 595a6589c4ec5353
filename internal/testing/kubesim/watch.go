// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package kubesim

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// message is one line of a watch.
type message struct {
	Type   string `json:"type"`
	Object any    `json:"object"`
}

// watch is one open watch.
type watch struct {
	server   *Server
	resource *resource
	request  *request
	from     int // the first entry of the log that it has not sent
	pending  []message
	// expired and disconnected are the counters of the resource when the watch was opened.
	expired, disconnected int
}

// watch answers with a stream of events until the client goes away or the watch expires.
func (s *Server) watch(r *request, res *resource) *http.Response {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := &watch{server: s, resource: res, request: r, from: len(res.log), expired: res.expired, disconnected: res.disconnected}
	if r.query.Get("sendInitialEvents") == "true" {
		for _, obj := range res.sorted() {
			if r.selects(obj) {
				w.add("ADDED", obj)
			}
		}
		end := &unstructured.Unstructured{Object: map[string]any{}}
		end.SetGroupVersionKind(res.gvk)
		end.SetResourceVersion(strconv.FormatInt(s.version, 10))
		end.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
		w.add("BOOKMARK", end)
	} else if version, err := strconv.ParseInt(r.query.Get("resourceVersion"), 10, 64); err == nil {
		for w.from = 0; w.from < len(res.log) && res.log[w.from].version <= version; w.from++ {
		}
	}
	reader, writer := io.Pipe()
	go w.run(r.context, writer)
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: reader}
}

func (w *watch) add(kind string, obj *unstructured.Unstructured) {
	w.pending = append(w.pending, message{kind, w.request.shown(obj)})
}

func (w *watch) run(ctx context.Context, out *io.PipeWriter) {
	stop := context.AfterFunc(ctx, func() { _ = out.CloseWithError(ctx.Err()) })
	defer stop()
	defer out.Close() //nolint:errcheck // a pipe closes without error
	encoder := json.NewEncoder(out)
	for {
		messages, changed, ended := w.next()
		for _, m := range messages {
			if encoder.Encode(m) != nil {
				return // the client is gone
			}
		}
		if ended {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// next returns what to send now, what is closed when there may be more, and whether that was all.
func (w *watch) next() (messages []message, changed <-chan struct{}, ended bool) {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	switch {
	case w.disconnected != w.resource.disconnected:
		return nil, nil, true
	case w.expired != w.resource.expired:
		gone := apierrors.NewResourceExpired("the watch has expired").Status()
		return []message{{"ERROR", &gone}}, nil, true
	}
	if !w.resource.held {
		for ; w.from < len(w.resource.log); w.from++ {
			w.translate(w.resource.log[w.from])
		}
	}
	messages, w.pending = w.pending, nil
	return messages, w.server.changed, false
}

// translate turns a change into what a client sees that sees only what the request selects.
func (w *watch) translate(e event) {
	was, is := e.before != nil && w.request.selects(e.before), e.after != nil && w.request.selects(e.after)
	switch {
	case is && was:
		w.add("MODIFIED", e.after)
	case is:
		w.add("ADDED", e.after)
	case was:
		last := e.before.DeepCopy()
		last.SetResourceVersion(strconv.FormatInt(e.version, 10))
		w.add("DELETED", last)
	}
}
