// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/coxswain-hpc/coxswain/internal/testing/imageregistry"
)

// another is set in a process that imports: the directory and the host.
const another = "COXSWAIN_STORE_TEST"

// TestMain imports an image in a process that a test has started.
func TestMain(m *testing.M) {
	dir, host, ok := strings.Cut(os.Getenv(another), " ")
	if !ok {
		os.Exit(m.Run())
	}
	failed := true
	testing.Main(func(string, string) (bool, error) { return true, nil }, []testing.InternalTest{{Name: "import", F: func(t *testing.T) {
		_, said, err := get(t.Context(), t, &Store{Dir: dir}, host)
		fmt.Println("said", said, err)
		failed = err != nil
	}}}, nil, nil)
	if failed {
		os.Exit(1)
	}
}

// start starts a process that imports.
func start(t *testing.T, dir, host string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	command := exec.CommandContext(t.Context(), os.Args[0])
	command.Env = append(os.Environ(), another+"="+dir+" "+host)
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	return command, &out
}

func TestAnImageIsFetchedOnceByManyProcesses(t *testing.T) {
	r, s := imageregistry.Start(t), &Store{Dir: t.TempDir()}
	digest, blobs := r.Push(t, "team/app:1", v1.Config{}, imageregistry.Layer(t, map[string]string{"x": random(1 << 20)}))
	importers := 0
	var all []*exec.Cmd
	var outs []*bytes.Buffer
	for range 4 {
		command, out := start(t, s.Dir, r.Host)
		all, outs = append(all, command), append(outs, out)
	}
	for i, command := range all {
		if err := command.Wait(); err != nil {
			t.Errorf("%v: %s", err, outs[i])
		}
		importers += strings.Count(outs[i].String(), "imported docker image")
	}
	if n := r.Requests("GET /v2/team/app/blobs/" + blobs[0]); n != 1 || importers != 1 {
		t.Errorf("the layer was fetched %d times, %d have imported it", n, importers)
	}
	expectNames(t, s, digest+".json", digest+".sqsh")
}

func TestAnImporterThatIsKilledLeavesNeitherItsLockNorFiles(t *testing.T) {
	r, s := imageregistry.Start(t), &Store{Dir: t.TempDir()}
	layer := imageregistry.Layer(t, map[string]string{"x": random(4 << 20)})
	digest, blobs := r.Push(t, "team/app:1", v1.Config{}, layer)
	reached := make(chan struct{})
	r.Before(func(w http.ResponseWriter, request *http.Request) bool {
		if !strings.HasSuffix(request.URL.Path, blobs[0]) {
			return false
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(layer)))
		_, _ = w.Write(layer[:2<<20])
		w.(http.Flusher).Flush()
		close(reached)
		<-request.Context().Done()
		return true
	})
	command, out := start(t, s.Dir, r.Host)
	<-reached
	for end := time.Now().Add(deadline); ; time.Sleep(time.Millisecond) {
		kept, err := filepath.Glob(filepath.Join(s.Dir, importing+"*", "0"))
		if err != nil {
			t.Fatal(err)
		}
		if len(kept) == 1 {
			if status, err := os.Stat(kept[0]); err == nil && status.Size() > 0 {
				break
			}
		}
		if time.Now().After(end) {
			t.Fatalf("nothing is kept of the layer: %s", out)
		}
	}
	if err := command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = command.Wait()
	if left := names(t, s); len(left) != 1 {
		t.Errorf("the killed process has left %q", left)
	}
	r.Before(nil)
	image, said, err := get(t.Context(), t, s, r.Host)
	if err != nil || len(said) != 2 || content(t, image.Path, "x") != random(4<<20) {
		t.Errorf("the next import: %q, %v", said, err)
	}
	expectNames(t, s, digest+".json", digest+".sqsh")
}

func TestLeftoversAreRemovedWhenTheirImportsHaveEnded(t *testing.T) {
	s := &Store{Dir: t.TempDir()}
	keep := map[string]bool{}
	add := func(name string, age time.Duration, kept bool) {
		path := filepath.Join(s.Dir, name)
		keep[name] = kept
		if err := os.MkdirAll(filepath.Join(path, "below"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Now(), time.Now().Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	for _, lock := range []string{"mine", "busy"} {
		release, err := s.lock(t.Context(), lock)
		if err != nil {
			t.Fatal(err)
		}
		defer release()
	}
	add(".import-mine@"+host()+"-1", 0, false)
	add(".import-free@"+host()+"-2", 0, false)
	add(".import-busy@"+host()+"-3", 2*patience, true)
	add(".import-mine@other-host-4", 0, true)
	add(".import-mine@other-host-5", 2*patience, false)
	add(".import-free@other-host-6", patience-time.Hour, true)
	add(".import-free@other-host-7", 2*patience, false)
	add(".import-busy@other-host-8", 2*patience, true)
	add(".import-", 2*patience, true)
	add("sha256:a.sqsh", 2*patience, true)
	s.sweep("mine")
	for name, want := range keep {
		if _, err := os.Stat(filepath.Join(s.Dir, name)); (err == nil) != want {
			t.Errorf("%s is kept: %v, want %v", name, err == nil, want)
		}
	}
}
