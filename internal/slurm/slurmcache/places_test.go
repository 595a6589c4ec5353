// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcache

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

func TestNodesAreFoundWhereTheLastListHasThem(t *testing.T) {
	at := func(s *Snapshot, place string) (names []string) {
		for _, n := range s.At(place) {
			names = append(names, n.Name)
		}
		return names
	}
	node := func(name, hostname, address string) *rest.Node {
		return &rest.Node{Name: name, Hostname: hostname, Address: address, State: []string{"IDLE"}}
	}
	now := time.Unix(1795172262, 0)
	first := NewSnapshot(now, Fresh, *node("worker-0", "worker-0", "10.0.0.1"), *node("other", "worker-1", "10.0.0.2"), *node("same", "10.0.0.3", "10.0.0.3"))
	moved, _ := first.following(now.Add(time.Second), rest.NodeList{Nodes: []*rest.Node{node("worker-0", "worker-0", "10.0.0.9"), node("other", "worker-1", "10.0.0.2")}}, nil)
	same, _ := moved.following(now.Add(2*time.Second), rest.NodeList{Unchanged: true}, nil)
	for _, tt := range []struct {
		name     string
		snapshot *Snapshot
		place    string
		want     []string
	}{
		{"a node is found by its address", first, "10.0.0.1", []string{"worker-0"}},
		{"a node is found by a host name that is not its name", first, "worker-1", []string{"other"}},
		{"a node whose host name is its address is found once", first, "10.0.0.3", []string{"same"}},
		{"nothing is found where no node is", first, "worker-2", nil},
		{"nothing is found where a node was before", moved, "10.0.0.1", nil},
		{"a node is found where it is now", moved, "10.0.0.9", []string{"worker-0"}},
		{"a node is found when nothing has changed since", same, "10.0.0.9", []string{"worker-0"}},
		{"nothing is found in a snapshot without a list", &Snapshot{}, "10.0.0.1", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, at(tt.snapshot, tt.place)); diff != "" {
				t.Errorf("at %s (-want +got):\n%s", tt.place, diff)
			}
		})
	}
}
