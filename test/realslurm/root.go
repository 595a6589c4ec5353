// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package realslurm lets tests use the daemons and commands of the Slurm images that images/build made, of both releases, without
// containers and without Kubernetes. Each cluster is a box: namespaces in which slurmctld, slurmrestd and any number of slurmds run
// on the images' files.
//
// It needs root and the images, so the tests that use it are skipped unless the environment variable COXSWAIN_SLURM names
// where Slurm is: "images" for the archives that images/build keeps (of the tag in COXSWAIN_SLURM_TAG, or dev), or a
// directory with one root file system for each release, named 24.11 and 26.05. "make compare" sets it, and so does "make test".
package realslurm

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/coxswain-hpc/coxswain/internal/testing/images"
)

// A Root is a root file system with Slurm.
type Root struct {
	// Release is "24.11" or "26.05".
	Release string
	Dir     string
}

// Releases returns those that can be used.
func Releases() []string { return []string{"24.11", "26.05"} }

// Roots returns the root file systems of both releases. Without COXSWAIN_SLURM the test is skipped.
func Roots(t testing.TB) []Root {
	t.Helper()
	where := os.Getenv("COXSWAIN_SLURM")
	if where == "" {
		t.Skip("COXSWAIN_SLURM does not say where a real Slurm is; \"make compare\" runs this test with that of the images")
	}
	if os.Geteuid() != 0 {
		t.Fatal("a real Slurm runs in namespaces of its own, which need root")
	}
	var roots []Root
	for _, release := range Releases() {
		dir := filepath.Join(where, release)
		if where == "images" {
			dir = unpacked(t, release)
		}
		roots = append(roots, Root{release, dir})
	}
	return roots
}

// unpacked returns the files of the images of a release, which are unpacked once after each build.
func unpacked(t testing.TB, release string) string {
	t.Helper()
	tag := os.Getenv("COXSWAIN_SLURM_TAG")
	if tag == "" {
		tag = "dev"
	}
	if release != "26.05" {
		tag += "-" + release
	}
	archive := images.Archive("slurm", tag)
	made, err := os.ReadFile(archive + ".inputs") //nolint:gosec // written by images/build
	if err != nil {
		t.Fatalf("%v; images/build makes it", err)
	}
	dir := strings.TrimSuffix(archive, ".tar") + ".root"
	unlock, err := lock(dir + ".lock")
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if have, err := os.ReadFile(filepath.Join(dir, "inputs")); err == nil && string(have) == string(made) { //nolint:gosec // below the cache
		return filepath.Join(dir, "root")
	}
	if err := os.RemoveAll(dir); err != nil { //nolint:gosec // below the cache
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "root"), 0o755); err != nil { //nolint:gosec // daemons read it as other users
		t.Fatal(err)
	}
	if err := images.Unpack(t.Context(), archive, filepath.Join(dir, "root"), "slurmctld", "slurmrestd", "slurmd"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "inputs"), made, 0o600); err != nil { //nolint:gosec // below the cache
		t.Fatal(err)
	}
	return filepath.Join(dir, "root")
}

// lock waits until no other process holds a file.
func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // below the cache
	if err != nil {
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	return func() { _ = f.Close() }, nil // closing it unlocks it
}
