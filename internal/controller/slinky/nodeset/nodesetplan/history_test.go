// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodesetplan_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/coxswain-hpc/coxswain/internal/controller/slinky/nodeset/nodesetplan"
)

func TestKeep(t *testing.T) {
	rev := func(hash string, number int64, data string) nodesetplan.Revision {
		return nodesetplan.Revision{Name: "w-" + hash, Hash: hash, Number: number, Data: []byte(data), Ours: true}
	}
	orphan := func(r nodesetplan.Revision) nodesetplan.Revision { r.Ours = false; return r }
	used := func(hashes ...string) map[string]bool {
		out := map[string]bool{}
		for _, h := range hashes {
			out[h] = true
		}
		return out
	}
	tests := []struct {
		name      string
		revisions []nodesetplan.Revision
		used      map[string]bool
		limit     int
		want      nodesetplan.History
	}{
		{"the first revision is made", nil, nil, 0, nodesetplan.History{Hash: "h0", Create: true, Number: 1}},
		{"a revision that is there is left alone", []nodesetplan.Revision{rev("h0", 1, "now")}, used("h0"), 0, nodesetplan.History{Hash: "h0", Number: 1}},
		{"a change makes another revision and keeps those of workers", []nodesetplan.Revision{rev("old", 1, "x"), rev("older", 4, "y")}, used("old"), 0,
			nodesetplan.History{Hash: "h0", Create: true, Number: 5, Delete: []string{"w-older"}}},
		{"as many revisions as the limit says are kept, the newest ones", []nodesetplan.Revision{rev("a", 1, "x"), rev("c", 3, "y"), rev("b", 2, "z"), rev("h0", 4, "now")}, nil, 2,
			nodesetplan.History{Hash: "h0", Number: 4, Delete: []string{"w-a"}}},
		{"a rollback makes the old revision the newest", []nodesetplan.Revision{rev("h0", 1, "now"), rev("b", 2, "x")}, used("b"), 0,
			nodesetplan.History{Hash: "h0", Renumber: "w-h0", Number: 3}},
		{"nobody's revisions are adopted, or deleted", []nodesetplan.Revision{orphan(rev("h0", 2, "now")), orphan(rev("b", 1, "x"))}, nil, 0,
			nodesetplan.History{Hash: "h0", Number: 2, Adopt: []string{"w-h0"}, Delete: []string{"w-b"}}},
		{"another revision with the same hash is passed by", []nodesetplan.Revision{rev("h0", 1, "else")}, used("h0"), 0,
			nodesetplan.History{Hash: "h1", Collisions: 1, Create: true, Number: 2}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := nodesetplan.Keep(tt.revisions, []byte("now"), 0, func(n int32) string { return fmt.Sprintf("h%d", n) }, tt.used, tt.limit)
			if diff := cmp.Diff(tt.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
		})
	}
}
