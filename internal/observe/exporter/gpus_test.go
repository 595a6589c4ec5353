// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package exporter

import (
	"testing"

	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

func TestGPUsOfANode(t *testing.T) {
	for _, tt := range []struct {
		name string
		node rest.Node
		want float64
	}{
		{"GPUs that are tracked count", rest.Node{TRES: "cpu=64,gres/gpu=8,gres/gpu:h100=8", Gres: "gpu:h100:8"}, 8},
		{"GPUs that are not tracked count", rest.Node{TRES: "cpu=64,mem=500G,billing=64", Gres: "gpu:8"}, 8},
		{"GPUs of a type, with sockets, count", rest.Node{Gres: "gpu:h100:8(S:0-1),shard:64"}, 8},
		{"GPUs of two types, with indexes, count", rest.Node{Gres: "gpu:h100:6(IDX:0,2-6),gpu:a100:2(S:0)"}, 8},
		{"GPUs without a number count as one", rest.Node{Gres: "gpu"}, 1},
		{"GPUs of a type without a number count as one", rest.Node{Gres: "gpu:h100"}, 1},
		{"other resources do not count", rest.Node{Gres: "shard:8,gpus:4"}, 0},
		{"a node that says nothing has no GPUs", rest.Node{}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := gpus(&tt.node); got != tt.want {
				t.Errorf("%v GPUs, want %v", got, tt.want)
			}
		})
	}
}
