// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func start(t *testing.T, dir, component, script string) (int, <-chan struct{}) {
	t.Helper()
	pid, exited, err := Start(Spec{
		Dir: dir, Component: component,
		Path: "/bin/sh", Args: []string{component, "-c", script},
		Log: filepath.Join(dir, "logs", component+".log"),
	})
	if err != nil {
		t.Fatal(err)
	}
	return pid, exited
}

func TestProcessesAreFoundAndKilled(t *testing.T) {
	dir := t.TempDir()
	begin := time.Now()
	pid, exited := start(t, dir, "one", "while :; do sleep 1000; done")
	// A directory whose name begins like ours is somebody else's.
	other, _ := start(t, dir+"-other", "one", "sleep 1000")
	found, err := Find(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 1 || found["one"].PID != pid {
		t.Fatalf("found %v, want process %d", found, pid)
	}
	if age := found["one"].Started.Sub(begin).Abs(); age > 5*time.Second {
		t.Errorf("its start is off by %v", age)
	}
	watched := Watch(pid)
	if err := Kill(t.Context(), found); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]<-chan struct{}{"Start": exited, "Watch": watched} {
		select {
		case <-c:
		case <-time.After(time.Minute):
			t.Errorf("the channel of %s did not notice the end", name)
		}
	}
	if found, err := Find(t.Context(), dir); err != nil || len(found) != 0 {
		t.Errorf("after Kill: %v, %v", found, err)
	}
	if !Alive(other) {
		t.Error("the other directory's process was killed, too")
	}
	left, err := Find(t.Context(), dir+"-other")
	if err != nil {
		t.Fatal(err)
	}
	if err := Kill(t.Context(), left); err != nil {
		t.Error(err)
	}
}

func TestProcessesGetACleanEnvironment(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://proxy.invalid")
	t.Setenv("KUBECONFIG", "/invalid")
	dir := t.TempDir()
	_, exited := start(t, dir, "env", "env; echo complaint >&2")
	<-exited
	b, err := os.ReadFile(filepath.Join(dir, "logs", "env.log"))
	if err != nil {
		t.Fatal(err)
	}
	if log := string(b); strings.Contains(log, "invalid") || !strings.Contains(log, "complaint") {
		t.Errorf("the log is:\n%s", log)
	}
}

func TestStartSaysWhatIsMissing(t *testing.T) {
	dir := t.TempDir()
	_, _, err := Start(Spec{Dir: dir, Component: "ghost", Path: "/nonexistent", Log: filepath.Join(dir, "log")})
	if err == nil || !strings.Contains(err.Error(), "starting ghost") {
		t.Errorf("got %v", err)
	}
}
