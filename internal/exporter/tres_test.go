// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package exporter

import (
	"math"
	"testing"

	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

func TestGPUsOfANode(t *testing.T) {
	for _, tt := range []struct {
		name string
		node rest.Node
		want float64
	}{
		{"tracked", rest.Node{TRES: "cpu=64,gres/gpu=8,gres/gpu:h100=8", Gres: "gpu:h100:8"}, 8},
		{"not tracked", rest.Node{TRES: "cpu=64,mem=500G,billing=64", Gres: "gpu:8"}, 8},
		{"of a type, with sockets", rest.Node{Gres: "gpu:h100:8(S:0-1),shard:64"}, 8},
		{"of two types, with indexes", rest.Node{Gres: "gpu:h100:6(IDX:0,2-6),gpu:a100:2(S:0)"}, 8},
		{"without a number", rest.Node{Gres: "gpu"}, 1},
		{"of a type without a number", rest.Node{Gres: "gpu:h100"}, 1},
		{"none", rest.Node{Gres: "shard:8,gpus:4"}, 0},
		{"nothing", rest.Node{}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := gpus(&tt.node); got != tt.want {
				t.Errorf("%v GPUs, want %v", got, tt.want)
			}
		})
	}
}

func TestMemoryOfTRES(t *testing.T) {
	for list, want := range map[string]float64{
		"cpu=1,mem=8000M": 8000 << 20, "mem=1.50G": 1536 << 20, "mem=2T": 2 << 40, "mem=100": 100 << 20, "mem=512K": 512 << 10, "mem=": 0, "mem=x": 0, "mem=-1M": 0, "": 0,
	} {
		if got := tres(list, "mem"); got != want {
			t.Errorf("%q is %v, want %v", list, got, want)
		}
	}
}

// FuzzTRES holds that nothing that Slurm may say is less than nothing, or no number.
func FuzzTRES(f *testing.F) {
	f.Add("cpu=16,mem=191356M,billing=16,gres/gpu=1")
	f.Add("gpu:h100:8(S:0-1),gpu:a100:2,shard:8")
	f.Add("gpu)(,:,gpu:")
	f.Fuzz(func(t *testing.T, list string) {
		for _, got := range []float64{tres(list, "mem"), tres(list, "gres/gpu"), gres(list, "gpu")} {
			if got < 0 || math.IsNaN(got) || math.IsInf(got, 0) {
				t.Errorf("%q is %v", list, got)
			}
		}
	})
}
