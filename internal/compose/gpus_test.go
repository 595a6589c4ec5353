// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"testing"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	"github.com/coxswain-hpc/coxswain/internal/testing/manifest"
)

func TestWhichClustersWantGPUs(t *testing.T) {
	for name, test := range map[string]struct {
		cluster, set string
		want         bool
	}{
		"nothing is said of GPUs":                  {set: `{slurmd: {resources: {cpu: "1"}}}`},
		"pods request GPUs":                        {set: `{slurmd: {resources: {nvidia.com/gpu: "8"}}}`, want: true},
		"GPUs are enabled":                         {set: `{gpu: {enabled: true}}`, want: true},
		"the line of the nodes has GPUs":           {set: `{nodeConfig: {static: "CPUs=4 Gres=gpu:h100:8"}}`, want: true},
		"gres.conf has GPUs":                       {set: `{nodeConfig: {gresConfig: [AutoDetect=nvidia]}}`, want: true},
		"workers of the first generation have any": {cluster: `{slurmNodes: {worker: {size: 1, slurmd: {resources: {nvidia.com/gpu: "8"}}}}}`, set: "{}", want: true},
	} {
		t.Run(name, func(t *testing.T) {
			spec := test.cluster
			if spec == "" {
				spec = "{}"
			}
			cluster := manifest.Parse[nebiusv1.SlurmCluster](t, "{metadata: {name: demo}, spec: "+spec+"}")
			set := manifest.Parse[nebiusv1alpha1.NodeSet](t, "{metadata: {name: w}, spec: "+test.set+"}")
			if got := WantsGPUs(cluster, []nebiusv1alpha1.NodeSet{*set}); got != test.want {
				t.Errorf("it wants GPUs: %v", got)
			}
		})
	}
}
