// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package view_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/node/jail"
	"github.com/coxswain-hpc/coxswain/internal/node/jail/view"
)

func openJail(t *testing.T) (dir string, root *jail.Root) {
	t.Helper()
	dir = t.TempDir()
	root, err := jail.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return dir, root
}

// modeOf returns the type and the mode of what is at a path.
func modeOf(t *testing.T, path string) fs.FileMode {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode()
}

func TestEverybodyWritesIntoTheDirectoriesForOutputs(t *testing.T) {
	dir, root := openJail(t)
	// The kubelet makes the directory of a hostPath like this.
	if err := os.MkdirAll(filepath.Join(dir, "opt/soperator-outputs/local/task_prolog"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := view.MakeOutputDirs(root); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{
		"", "/local", "/local/nccl_logs", "/local/slurm_jobs", "/local/slurm_scripts", "/local/task_prolog", "/local/health_checker_cmd_stdout",
		"/shared", "/shared/nccl_profiles", "/shared/acceptance",
	} {
		if got := modeOf(t, filepath.Join(dir, "opt/soperator-outputs", path)); got != fs.ModeDir|0o777 {
			t.Errorf("%q is %s", path, got)
		}
	}
	if got := modeOf(t, filepath.Join(dir, "opt")); got.Perm()&0o022 != 0 {
		t.Errorf("others may write into /opt: %s", got)
	}
}

func TestDirectoriesForOutputsThatAreThereAreNotWrittenTo(t *testing.T) {
	dir, root := openJail(t)
	if err := view.MakeOutputDirs(root); err != nil {
		t.Fatal(err)
	}
	local := filepath.Join(dir, "opt/soperator-outputs/local")
	before := time.Now().Add(-time.Hour).Truncate(time.Second)
	if err := os.Chtimes(local, before, before); err != nil {
		t.Fatal(err)
	}
	if err := view.MakeOutputDirs(root); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(local); err != nil || !info.ModTime().Equal(before) {
		t.Errorf("%v, %v", info.ModTime(), err)
	}
}

func TestWhatIsInTheWayOfADirectoryForOutputsIsToldAndLeftAlone(t *testing.T) {
	dir, root := openJail(t)
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.Mkdir(outside, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "opt/soperator-outputs/local"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "opt/soperator-outputs/shared")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "opt/soperator-outputs/local/slurm_jobs"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	err := view.MakeOutputDirs(root)
	for _, path := range []string{"/opt/soperator-outputs/shared", "/opt/soperator-outputs/local/slurm_jobs"} {
		if err == nil || !strings.Contains(err.Error(), path+" ") && !strings.Contains(err.Error(), path+":") {
			t.Errorf("%v does not name %s", err, path)
		}
	}
	if got := modeOf(t, outside); got != fs.ModeDir|0o700 {
		t.Errorf("what a link leads to is %s", got)
	}
	if got := modeOf(t, filepath.Join(dir, "opt/soperator-outputs/local/slurm_jobs")); got != 0o600 {
		t.Errorf("a file in the way is %s", got)
	}
	if got := modeOf(t, filepath.Join(dir, "opt/soperator-outputs/local/task_prolog")); got != fs.ModeDir|0o777 {
		t.Errorf("another directory is %s", got)
	}
}
