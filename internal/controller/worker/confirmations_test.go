// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"testing"

	"github.com/coxswain-hpc/coxswain/internal/link"
)

func TestOneSilentClusterLeavesReconcilesForOthers(t *testing.T) {
	var c confirmations
	silent, other := link.Key{Namespace: "n", Name: "silent"}, link.Key{Namespace: "n", Name: "other"}
	waiting := 0
	for range concurrency {
		if c.begin(silent) {
			waiting++
		}
	}
	if waiting == 0 || waiting > concurrency/4 {
		t.Errorf("%d of %d reconciles wait for one cluster", waiting, concurrency)
	}
	if !c.begin(other) {
		t.Error("another cluster cannot be asked")
	}
	c.end(other)
	c.end(silent)
	if !c.begin(silent) {
		t.Error("nobody follows one that has ended")
	}
	if _, kept := c.of[other]; kept {
		t.Error("a cluster is remembered that nobody asks")
	}
}
