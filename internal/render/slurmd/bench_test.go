// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmd_test

import (
	"testing"

	"github.com/coxswain-hpc/coxswain/internal/render/slurmd"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

func BenchmarkPod(b *testing.B) {
	in := input(b, detailed)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := slurmd.Pod(in, workerpod.Place{}, "0123456789"); err != nil {
			b.Fatal(err)
		}
	}
}
