// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package leftout prints what "go test ./..." leaves out on a machine, and which command runs it.
package leftout

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/chart"
)

func TestMain(m *testing.M) {
	code := m.Run()
	tell(os.Geteuid() == 0, apiserver.Missing(), chart.Missing())
	// Without a log of what the test has read, Go does not take its result from the cache next time.
	if log := flag.Lookup("test.testlogfile"); log != nil && log.Value.String() != "" {
		_ = os.Remove(log.Value.String())
	}
	os.Exit(code)
}

// tell prints the sentence. "go test" shows nothing that a passing package writes, so it is written where go itself writes.
func tell(root bool, kubernetes, helm error) {
	parent := filepath.Join("/proc", fmt.Sprint(os.Getppid()))
	name, err := os.ReadFile(filepath.Join(parent, "comm"))
	if err != nil || string(bytes.TrimSpace(name)) != "go" || apiserver.Required() {
		return
	}
	// A terminal or a pipe takes it after what is there; a file has to be opened for that.
	terminal, err := os.OpenFile(filepath.Join(parent, "fd", "2"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return
	}
	fmt.Fprintln(terminal, sentence(root, kubernetes, helm))
	_ = terminal.Close()
}

// sentence returns what "go test ./..." leaves out.
func sentence(root bool, kubernetes, helm error) string {
	out := []string{"end-to-end tests, real Slurm daemons and container images, benchmarks, most writes of the fault suite"}
	if kubernetes != nil {
		out = append(out, `tests with a real API server (first "make bin/localkube && bin/localkube build")`)
	}
	if helm != nil {
		out = append(out, `tests of the charts (first "make bin/helm")`)
	}
	if !root {
		out = append(out, "tests of mounts and owners of files (as root)")
	}
	return `left out: ` + strings.Join(out, "; ") + `. "make test" as root runs most of them, "make test-long" all.`
}

func TestTheSentenceNamesWhatIsMissing(t *testing.T) {
	missing := errors.New("no binary")
	for name, c := range map[string]struct {
		root       bool
		missing    error // of both
		want, lack string
	}{
		"somebody has a clone and nothing else":     {missing: missing, want: "bin/localkube build", lack: "nothing"},
		"somebody has no helm":                      {missing: missing, want: `"make bin/helm"`, lack: "nothing"},
		"root has built the local Kubernetes":       {root: true, want: "end-to-end", lack: "as root)"},
		"somebody has built the local Kubernetes":   {want: "as root)", lack: "bin/localkube build"},
		"root has a clone without local Kubernetes": {root: true, missing: missing, want: "real API server", lack: "as root)"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := sentence(c.root, c.missing, c.missing); !strings.Contains(got, c.want) || strings.Contains(got, c.lack) || !strings.Contains(got, `"make test"`) {
				t.Errorf("it says %q, which has to have %q and not %q", got, c.want, c.lack)
			}
		})
	}
}
