// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// manyNodes is a slurm.conf with n NodeName lines that differ.
func manyNodes(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "NodeName=static-%d CPUs=%d RealMemory=1000 State=UNKNOWN\n", i, 1+i%64)
	}
	return b.String()
}

// BenchmarkMerge lays as many lines over as many others, all of the same kind.
func BenchmarkMerge(b *testing.B) {
	for _, n := range []int{100, 1_000, 10_000} {
		text := manyNodes(n)
		base := parsed(b, Slurm, strings.ReplaceAll(text, "CPUs=1 ", "CPUs=2 "))
		b.Run(fmt.Sprintf("lines=%d", n), func(b *testing.B) {
			for b.Loop() {
				user, _ := Parse(Slurm, text)
				if _, problems := Merge(base, user, Owned{"ClusterName"}); len(problems) > 0 {
					b.Fatal(problems)
				}
			}
		})
	}
}

// TestTenThousandLinesMergeInAMoment once took 46 s.
func TestTenThousandLinesMergeInAMoment(t *testing.T) {
	text := manyNodes(10_000)
	base := parsed(t, Slurm, strings.ReplaceAll(text, "CPUs=1 ", "CPUs=2 "))
	start := time.Now()
	merged, _ := Merge(base, parsed(t, Slurm, text), Owned{"ClusterName"})
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
	if got := len(merged.Entries()); got != 10_000 {
		t.Errorf("there are %d lines", got)
	}
}
