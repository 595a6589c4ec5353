// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package statuspage

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
)

func TestWhatIsSentToSomebodyWhoHasSeenAnEarlierVersion(t *testing.T) {
	drain := func(f *Facts) { f.Nodes[60].State = node.Parse([]string{"IDLE", "DRAIN"}) }
	for _, tt := range []struct {
		name    string
		changes []func(f *Facts)
		want    []string
	}{
		{"nothing, where nothing has changed", []func(f *Facts){func(*Facts) {}}, nil},
		{"nothing, where only time has passed", []func(f *Facts){func(f *Facts) { f.Now = f.Now.Add(1e9) }}, nil},
		{"a part of the grid and the counts, where a node has changed", []func(f *Facts){drain}, []string{"legend", "set-0", "set-0-1"}},
		{"all changes together", []func(f *Facts){drain, func(f *Facts) { f.NodeSets[0].Status.OutOfService = nil }}, []string{"ledger", "legend", "set-0", "set-0-1"}},
		{"the head and the notes of grids, where the states are old", []func(f *Facts){func(f *Facts) { f.Slurm.Trust = slurmcache.Stale }}, []string{"head", "set-0", "set-1"}},
		{"all, where a grid gets another part", []func(f *Facts){func(f *Facts) {
			for i := range chunkNodes {
				f.Nodes = append(f.Nodes, exampleNode("cpu", 1000+i, 1))
			}
		}}, []string{"main"}},
		{"all, where a NodeSet comes", []func(f *Facts){func(f *Facts) { f.NodeSets = append(slices.Clone(f.NodeSets), NodeSet{Name: "new"}) }}, []string{"main"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b, templates, f := newBoard("e"), newTemplates(), example(200)
			if err := b.refresh(templates, f); err != nil {
				t.Fatal(err)
			}
			first, err := b.since(templates, "")
			if err != nil || len(first.fragments) != 1 || !strings.Contains(first.fragments["main"], "cpu-149") {
				t.Fatalf("at first there are %d fragments: %v", len(first.fragments), err)
			}
			for _, change := range tt.changes {
				f.Nodes = slices.Clone(f.Nodes)
				change(&f)
				if err := b.refresh(templates, f); err != nil {
					t.Fatal(err)
				}
			}
			got, err := b.since(templates, first.position)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, slices.Sorted(maps.Keys(got.fragments))); diff != "" {
				t.Errorf("what is sent:\n%s", diff)
			}
			select {
			case <-first.next:
				if tt.want == nil {
					t.Error("somebody was woken for nothing")
				}
			default:
				if tt.want != nil {
					t.Error("nobody was woken")
				}
			}
			if again, err := b.since(templates, got.position); err != nil || len(again.fragments) > 0 {
				t.Errorf("%d fragments are sent twice: %v", len(again.fragments), err)
			}
		})
	}
}

// A fragment that is sent is the one that a new page has.
func TestAFragmentIsAPartOfThePage(t *testing.T) {
	b, templates, f := newBoard("e"), newTemplates(), example(200)
	if err := b.refresh(templates, f); err != nil {
		t.Fatal(err)
	}
	before := b.position()
	f.Nodes[60].State = node.Parse([]string{"DOWN"})
	if err := b.refresh(templates, f); err != nil {
		t.Fatal(err)
	}
	whole := page(t, templates, f)
	u, err := b.since(templates, before)
	if err != nil || len(u.fragments) == 0 {
		t.Fatalf("%d fragments: %v", len(u.fragments), err)
	}
	for id, html := range u.fragments {
		if !strings.Contains(whole, html) || !strings.Contains(whole, "id=\""+id+"\"") {
			t.Errorf("the page does not have fragment %s", id)
		}
	}
}

func FuzzPositionsOfOthersAreNotKnown(f *testing.F) {
	for _, seed := range []string{"", "e-1", "e-2", "e--1", "e-1x", "other-1", "e-99999999999999999999", "e-01"} {
		f.Add(seed)
	}
	b := newBoard("e")
	if err := b.refresh(newTemplates(), example(1)); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, position string) {
		version, known := b.parse(position)
		if known && (version < 0 || version > b.version || !strings.HasPrefix(position, "e-")) {
			t.Errorf("%q is taken for version %d", position, version)
		}
	})
}
