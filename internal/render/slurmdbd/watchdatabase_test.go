// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmdbd_test

import (
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/coxswain-hpc/coxswain/internal/render/slurmdbd"
	"github.com/coxswain-hpc/coxswain/internal/testing/executable"
)

// script is what the readiness probe of the sidecar runs.
func script(t *testing.T) string {
	t.Helper()
	for _, o := range slurmdbd.Render(input(t, "{"+storage+"}")).Objects {
		if s, ok := o.(*appsv1.StatefulSet); ok {
			return s.Spec.Template.Spec.InitContainers[0].ReadinessProbe.Exec.Command[2]
		}
	}
	t.Fatal("there is no StatefulSet")
	return ""
}

func TestTheSidecarKnowsWhetherSlurmdbdHasItsDatabase(t *testing.T) {
	const (
		up      = "echo 'slurmdbd(primary) at localhost is UP'"
		lost    = "echo 'Unable to connect to database' >&2; echo 'slurmdbd(primary) at localhost is DOWN'; exit 1"
		refused = "echo 'sacctmgr: error: failed to open persistent connection: Connection refused' >&2; exit 1"
	)
	for _, tt := range []struct {
		name, sacctmgr string
		connected      bool
		want           int
	}{
		{"slurmdbd says that it has it", up, false, 0},
		{"slurmdbd says that it has lost it, and a connection is still open", lost, true, 1},
		{"slurmdbd does not serve, but has a connection: it converts its tables", refused, true, 0},
		{"slurmdbd does not serve and has no connection", refused, false, 1},
		{"the image has no sacctmgr, and there is a connection", "", true, 0},
		{"the image has no sacctmgr, and there is no connection", "", false, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = listener.Close() }()
			if tt.connected {
				conn, err := net.Dial("tcp", listener.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = conn.Close() }()
			}
			dir := t.TempDir()
			if tt.sacctmgr != "" {
				executable.Write(t, filepath.Join(dir, "sacctmgr"), "#!/bin/sh\n"+tt.sacctmgr+"\n")
			}
			cmd := exec.CommandContext(t.Context(), "bash", "-c", script(t))
			address, _ := listener.Addr().(*net.TCPAddr)
			cmd.Env = []string{"PATH=" + dir + ":/usr/bin:/bin", fmt.Sprintf("STORAGE_PORT=%d", address.Port)}
			out, _ := cmd.CombinedOutput()
			if got := cmd.ProcessState.ExitCode(); got != tt.want {
				t.Errorf("it ends with %d, want %d: %s", got, tt.want, out)
			}
		})
	}
}
