// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package login

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAKeyIsMadeOnceAndIsForItsOwnerOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "demo", "id_ed25519")
	first, err := EnsureKey(path)
	if err != nil {
		t.Fatal(err)
	}
	second, err := EnsureKey(path)
	if err != nil {
		t.Fatal(err)
	}
	if first.AuthorizedKey() != second.AuthorizedKey() {
		t.Error("the key was made anew")
	}
	if key := first.AuthorizedKey(); !strings.HasPrefix(key, "ssh-ed25519 AAAA") || !strings.HasSuffix(key, " demo") || strings.Contains(key, "\n") {
		t.Errorf("%q is no line of an authorized_keys file", key)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the private key has mode %v (%v), not 0600", info.Mode(), err)
	}
	if err := os.WriteFile(path, []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := EnsureKey(path); err == nil {
		t.Error("what is no key was taken for one")
	}
}

func TestTasksAreReadFromTables(t *testing.T) {
	want := []Task{
		{ID: "2_1", State: "COMPLETED", Nodes: "worker-0"},
		{ID: "3", State: "PENDING", Reason: "Resources"},
	}
	if diff := cmp.Diff(want, tasks("2_1|COMPLETED|worker-0\n3|PENDING||Resources\n\nslurm_load_jobs error\n")); diff != "" {
		t.Errorf("tasks differ (-want +got):\n%s", diff)
	}
	for state, ended := range map[string]bool{"COMPLETED": true, "FAILED": true, "PENDING": false, "RUNNING": false, "COMPLETING": false} {
		if allEnded([]Task{{State: "COMPLETED"}, {State: state}}) != ended {
			t.Errorf("a job with a task that is %s counts as ended: %t", state, !ended)
		}
	}
}
