// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"testing"

	"github.com/coxswain-hpc/coxswain/internal/link"
)

func TestOneSilentClusterLeavesReconcilesForOthers(t *testing.T) {
	var a asking
	silent, other := link.Key{Namespace: "n", Name: "silent"}, link.Key{Namespace: "n", Name: "other"}
	waiting := 0
	for range concurrency {
		if a.begin(silent) {
			waiting++
		}
	}
	if waiting == 0 || waiting > concurrency/4 {
		t.Errorf("%d of %d reconciles wait for one cluster", waiting, concurrency)
	}
	if !a.begin(other) {
		t.Error("another cluster cannot be asked")
	}
	a.end(other)
	a.end(silent)
	if !a.begin(silent) {
		t.Error("nobody follows one that has ended")
	}
	if _, kept := a.of[other]; kept {
		t.Error("a cluster is remembered that nobody asks")
	}
}
