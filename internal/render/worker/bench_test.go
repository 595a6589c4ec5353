// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"testing"

	"github.com/coxswain-hpc/coxswain/internal/nodeset"
	renderworker "github.com/coxswain-hpc/coxswain/internal/render/worker"
)

func BenchmarkPod(b *testing.B) {
	in := input(b, detailed)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := renderworker.Pod(in, nodeset.Place{}, "0123456789"); err != nil {
			b.Fatal(err)
		}
	}
}
