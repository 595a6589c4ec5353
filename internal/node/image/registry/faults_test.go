// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/node/image/registry"
)

// layerText is long enough to be sent in several parts.
var layerText = strings.Repeat("0123456789abcdef", 8<<10)

// layerPath is where a registry has it.
var layerPath = "/v2/team/app/blobs/" + digestOf([]byte(layerText))

// onLayer lets a function answer requests for the layer, with the number of the request.
func onLayer(f *fake, answer func(n int, w http.ResponseWriter, r *http.Request) bool) {
	var n atomic.Int32
	f.before = func(w http.ResponseWriter, r *http.Request) bool {
		return r.URL.Path == layerPath && answer(int(n.Add(1)), w, r)
	}
}

// cut sends a part of the layer, and breaks the connection.
func cut(w http.ResponseWriter, from, to int) {
	w.Header().Set("Content-Length", strconv.Itoa(len(layerText)-from))
	if from > 0 {
		w.WriteHeader(http.StatusPartialContent)
	}
	_, _ = io.WriteString(w, layerText[from:to])
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

func TestALayerIsCheckedToItsEnd(t *testing.T) {
	for name, test := range map[string]struct {
		answer func(n int, w http.ResponseWriter, r *http.Request) bool
		reason registry.Reason
		// want is in the error. Without it the layer is read.
		want string
	}{
		"other bytes of the same length": {
			answer: func(_ int, w http.ResponseWriter, _ *http.Request) bool {
				_, _ = io.WriteString(w, strings.ToUpper(layerText))
				return true
			},
			reason: registry.Corrupt, want: "sends other bytes for image",
		},
		"a length that is not the manifest's": {
			answer: func(_ int, w http.ResponseWriter, _ *http.Request) bool {
				w.Header().Set("Content-Length", "5")
				_, _ = io.WriteString(w, layerText[:5])
				return true
			},
			reason: registry.Corrupt, want: "has 5 bytes of sha256:",
		},
		"more bytes than the manifest has": {
			answer: func(_ int, w http.ResponseWriter, _ *http.Request) bool {
				w.Header().Set("Transfer-Encoding", "chunked")
				for range 3 {
					_, _ = io.WriteString(w, layerText)
				}
				return true
			},
			reason: registry.Corrupt, want: "than the 131072 of its manifest",
		},
		"a connection that always breaks at the same place": {
			answer: func(_ int, w http.ResponseWriter, r *http.Request) bool {
				from, _ := strconv.Atoi(strings.Trim(r.Header.Get("Range"), "bytes=-"))
				cut(w, from, max(from, 1000))
				return true
			},
			reason: registry.Unreachable, want: "ended 5 times before all 131072 bytes",
		},
		"an answer that ends early": {
			answer: func(_ int, w http.ResponseWriter, r *http.Request) bool {
				from, _ := strconv.Atoi(strings.Trim(r.Header.Get("Range"), "bytes=-"))
				w.Header().Set("Transfer-Encoding", "chunked")
				if from > 0 {
					w.WriteHeader(http.StatusPartialContent)
				}
				_, _ = io.WriteString(w, layerText[from:max(from, 1000)])
				return true
			},
			reason: registry.Unreachable, want: "ended 5 times before all 131072 bytes",
		},
		"a layer that is gone": {
			answer: func(_ int, w http.ResponseWriter, _ *http.Request) bool {
				w.WriteHeader(http.StatusNotFound)
				return true
			},
			reason: registry.NotFound, want: "has the manifest of image",
		},
		"a connection that breaks three times is made again": {
			answer: func(n int, w http.ResponseWriter, r *http.Request) bool {
				from, _ := strconv.Atoi(strings.Trim(r.Header.Get("Range"), "bytes=-"))
				if n < 4 {
					cut(w, from, from+1000)
				}
				return false
			},
		},
		"a host that does not know ranges sends all again": {
			answer: func(n int, w http.ResponseWriter, r *http.Request) bool {
				if n == 1 {
					cut(w, 0, 1000)
				}
				r.Header.Del("Range")
				return false
			},
		},
		"a layer without a length": {
			answer: func(_ int, w http.ResponseWriter, _ *http.Request) bool {
				w.Header().Set("Transfer-Encoding", "chunked")
				_, _ = io.WriteString(w, layerText)
				return true
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, false)
			f.image("1", "amd64", layerText)
			onLayer(f, test.answer)
			text, _, err := pull(t.Context(), clientOf(t, f), f.reference(t, ":1"), nil)
			if test.want == "" {
				if err != nil || text != layerText {
					t.Errorf("%d bytes are read, %v", len(text), err)
				}
				return
			}
			wantError(t, err, test.reason, test.want, f.host, digestOf([]byte(layerText)))
			if errors.Is(err, io.EOF) {
				t.Error("to whoever reads it, the layer has ended")
			}
		})
	}
}

func TestASlowLayerEndsWithItsContext(t *testing.T) {
	f := newFake(t, false)
	f.image("1", "amd64", layerText)
	end := make(chan struct{})
	onLayer(f, func(_ int, w http.ResponseWriter, r *http.Request) bool {
		for i := 0; i < len(layerText) && r.Context().Err() == nil; i++ {
			_, _ = io.WriteString(w, layerText[i:i+1])
			_ = http.NewResponseController(w).Flush()
			time.Sleep(time.Millisecond)
		}
		close(end)
		return true
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	c := clientOf(t, f)
	image, err := c.Resolve(ctx, f.reference(t, ":1"), nil)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := image.Open(ctx, image.Layers[0])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	cancelled := errors.New("the job was cancelled")
	cancel(cancelled)
	if _, err := io.ReadAll(stream); !errors.Is(err, cancelled) || !strings.Contains(err.Error(), "team/app:1") {
		t.Errorf("the error is %v", err)
	}
	if err := stream.Close(); err != nil {
		t.Error(err)
	}
	if _, err := stream.Read(make([]byte, 1)); err == nil {
		t.Error("a closed stream is read")
	}
	select {
	case <-end:
	case <-time.After(time.Minute):
		t.Error("the registry still sends")
	}
}

func TestAConnectionOnWhichNothingComesIsMadeAgain(t *testing.T) {
	f := newFake(t, false)
	f.image("1", "amd64", layerText)
	onLayer(f, func(n int, w http.ResponseWriter, r *http.Request) bool {
		if n > 1 {
			return false
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(layerText)))
		_, _ = io.WriteString(w, layerText[:1000])
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		return true
	})
	c := newClient(t, registry.Options{Insecure: []string{f.host}, IdleTimeout: 100 * time.Millisecond})
	if text, _, err := pull(t.Context(), c, f.reference(t, ":1"), nil); err != nil || text != layerText {
		t.Errorf("%d bytes are read, %v", len(text), err)
	}
}

func TestABusyRegistryIsAskedAgain(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, test := range map[string]struct {
		// status and after are the answers to the first requests for the manifest.
		status, answers int
		after           string
		// waited is how many waits there are, each of which is at least as long as shortest.
		waited          int
		shortest, exact time.Duration
		reason          registry.Reason
		want            string
	}{
		"an internal error passes":         {status: 500, answers: 1, waited: 1, shortest: 500 * time.Millisecond},
		"three errors pass":                {status: 503, answers: 3, waited: 3, shortest: 500 * time.Millisecond},
		"a limit passes after its seconds": {status: 429, answers: 1, after: "7", waited: 1, exact: 7 * time.Second},
		"a limit passes at its time": {
			status: 429, answers: 1, after: "Fri, 02 Jan 2026 03:04:45 GMT", waited: 1, exact: 40 * time.Second,
		},
		"a limit in the past counts for nothing": {
			status: 429, answers: 1, after: "Fri, 02 Jan 2026 03:04:00 GMT", waited: 1, shortest: 500 * time.Millisecond,
		},
		"a limit of an hour is the user's": {
			status: 429, answers: 1, after: "3600", reason: registry.RateLimited, want: "limits requests and does not hand out image",
		},
		"a limit that stays": {
			status: 429, answers: 9, waited: 3, reason: registry.RateLimited, want: "(429): try again later, or log in for a higher limit",
		},
		"a gateway that stays broken": {
			status: 502, answers: 9, waited: 3, reason: registry.Unavailable, want: "answers 502 Bad Gateway for image",
		},
		"another status": {
			status: 418, answers: 9, reason: registry.Unavailable, want: "answers 418 I'm a teapot for image",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, false)
			f.image("1", "amd64", "layer")
			var n atomic.Int32
			f.before = func(w http.ResponseWriter, r *http.Request) bool {
				if !strings.Contains(r.URL.Path, "manifests") || int(n.Add(1)) > test.answers {
					return false
				}
				if test.after != "" {
					w.Header().Set("Retry-After", test.after)
				}
				w.WriteHeader(test.status)
				return true
			}
			w := new(waits)
			c := newClient(t, registry.Options{Insecure: []string{f.host}, Wait: w.wait, Now: func() time.Time { return now }})
			_, err := c.Resolve(t.Context(), f.reference(t, ":1"), nil)
			if test.want == "" && err != nil {
				t.Error(err)
			}
			if test.want != "" {
				wantError(t, err, test.reason, test.want, f.host)
			}
			all := w.all
			if len(all) != test.waited {
				t.Errorf("the waits are %v", all)
			}
			for _, d := range all {
				if d < test.shortest || d > time.Minute || test.exact != 0 && d != test.exact {
					t.Errorf("the wait is %v", d)
				}
			}
		})
	}
}

func TestARegistryThatIsDownIsUnreachable(t *testing.T) {
	f := newFake(t, false)
	r := f.reference(t, ":1")
	f.Close()
	w := new(waits)
	c := newClient(t, registry.Options{Wait: w.wait})
	_, err := c.Resolve(t.Context(), r, nil)
	wantError(t, err, registry.Unreachable, f.host+" does not answer to requests for image", "try again later, or check the node's network")
	if len(w.all) == 0 {
		t.Errorf("the registry is not down, or was asked once: %v", w.all)
	}
}
