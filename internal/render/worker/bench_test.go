// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"testing"

	renderworker "github.com/coxswain-hpc/coxswain/internal/render/worker"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

func BenchmarkPod(b *testing.B) {
	in := input(b, detailed)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := renderworker.Pod(in, workerpod.Place{}, "0123456789"); err != nil {
			b.Fatal(err)
		}
	}
}
