// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import "testing"

func BenchmarkCluster(b *testing.B) {
	in := load(b).file(b, "full")
	if out := Cluster(in); len(out.Problems) > 0 {
		b.Fatal(out.Problems.Message())
	}
	b.ReportAllocs()
	for b.Loop() {
		Cluster(in)
	}
}
