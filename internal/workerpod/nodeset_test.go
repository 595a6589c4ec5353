// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package workerpod

import (
	"testing"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

func TestANodeSetGrowsUntilMostOfItsWorkersAreReady(t *testing.T) {
	for name, tt := range map[string]struct {
		exist, updated, ready int32
		want                  bool
	}{
		"no worker exists":                              {0, 0, 0, true},
		"half of them exist":                            {50, 50, 50, true},
		"all exist and none is ready":                   {100, 100, 0, true},
		"all exist and 89 of 100 are ready":             {100, 100, 89, true},
		"all exist and 90 of 100 are ready":             {100, 100, 90, false},
		"an update has a quarter of them start":         {100, 25, 75, false},
		"an update has taken a quarter of them":         {75, 0, 75, true},
		"all are ready":                                 {100, 100, 100, false},
		"there are more than wanted, and none is ready": {200, 200, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			replicas := int32(100)
			n := &slinkyv1beta1.NodeSet{Spec: slinkyv1beta1.NodeSetSpec{Replicas: &replicas}}
			n.Status.Replicas, n.Status.UpdatedReplicas, n.Status.ReadyReplicas = tt.exist, tt.updated, tt.ready
			if got := Growing(n); got != tt.want {
				t.Errorf("Growing is %t", got)
			}
		})
	}
}
