// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestValidateName(t *testing.T) {
	for name, valid := range map[string]bool{
		"coxswain": true, "a": true, "e2e-1": true,
		"": false, "A": false, "-a": false, "a-": false, "a/b": false, "..": false, "a b": false,
		"abcdefghijklmnopqrstuvwxyz0123456": false,
	} {
		if err := ValidateName(name); (err == nil) != valid {
			t.Errorf("ValidateName(%q) = %v, want valid: %v", name, err, valid)
		}
	}
}

func TestIDDependsOnRootAndName(t *testing.T) {
	ids := map[string]bool{}
	for _, c := range []Cluster{Root("/a").Cluster("x"), Root("/a").Cluster("y"), Root("/b").Cluster("x")} {
		if len(c.ID()) != 6 {
			t.Errorf("ID of %s is %q, want six digits", c.Dir, c.ID())
		}
		ids[c.ID()] = true
	}
	if len(ids) != 3 {
		t.Errorf("three clusters have the IDs %v", ids)
	}
}

func TestAcquireWaitsForTheOther(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sub", "lock")
	release, err := Acquire(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	said := 0
	if _, err := Acquire(short, path, func() { said++ }); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("second Acquire returned %v, want a time-out", err)
	}
	if said != 1 {
		t.Errorf("said %d times that it waits, want once", said)
	}
	release()
	release, err = Acquire(t.Context(), path, nil)
	if err != nil {
		t.Fatalf("Acquire after release: %v", err)
	}
	// The holder removes the file while the next one waits for it.
	next := make(chan error)
	go func() {
		release, err := Acquire(t.Context(), path, func() { next <- nil })
		if err == nil {
			defer release()
			_, err = os.Stat(path)
		}
		next <- err
	}()
	if err := <-next; err != nil { // it waits
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	release()
	if err := <-next; err != nil {
		t.Errorf("the next one locked a file that is gone: %v", err)
	}
}
