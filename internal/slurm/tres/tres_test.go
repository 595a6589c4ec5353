// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package tres

import (
	"math"
	"testing"
)

func TestMemoryOfTRES(t *testing.T) {
	for list, want := range map[string]float64{
		"cpu=1,mem=8000M": 8000 << 20, "mem=1.50G": 1536 << 20, "mem=2T": 2 << 40, "mem=100": 100 << 20, "mem=512K": 512 << 10, "mem=": 0, "mem=x": 0, "mem=-1M": 0, "": 0,
	} {
		if got := Amount(list, "mem"); got != want {
			t.Errorf("%q is %v, want %v", list, got, want)
		}
	}
}

// FuzzTRES checks that no answer of Slurm yields a negative amount, or one that is not a number.
func FuzzTRES(f *testing.F) {
	f.Add("cpu=16,mem=191356M,billing=16,gres/gpu=1")
	f.Add("gpu:h100:8(S:0-1),gpu:a100:2,shard:8")
	f.Add("gpu)(,:,gpu:")
	f.Fuzz(func(t *testing.T, list string) {
		for _, got := range []float64{Amount(list, "mem"), Amount(list, "gres/gpu"), Generic(list, "gpu")} {
			if got < 0 || math.IsNaN(got) || math.IsInf(got, 0) {
				t.Errorf("%q is %v", list, got)
			}
		}
	})
}
