// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package powerrequest

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
)

func TestSplit(t *testing.T) {
	for name, c := range map[string]struct {
		list   string
		groups []Group
		others []string
	}{
		"nodes of two NodeSets are two groups, in order": {
			list: "gpu-[2,0-1],cpu-7", groups: []Group{{"cpu", []int32{7}}, {"gpu", []int32{0, 1, 2}}},
		},
		"a NodeSet may have dashes and numbers in its name": {list: "a-1-2", groups: []Group{{"a-1", []int32{2}}}},
		"a node that is named twice counts once":            {list: "a-1,a-1", groups: []Group{{"a", []int32{1}}}},
		"an ordinal has no zeros in front":                  {list: "a-01", others: []string{"a-01"}},
		"a name without an ordinal is no worker's":          {list: "login,a-,a-b", others: []string{"login", "a-", "a-b"}},
		"an ordinal has an end":                             {list: "a-2147483647,a-2147483648", groups: []Group{{"a", []int32{2147483647}}}, others: []string{"a-2147483648"}},
	} {
		t.Run(name, func(t *testing.T) {
			groups, others, err := Split(c.list)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.groups, groups); diff != "" {
				t.Errorf("groups (-want, +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.others, others); diff != "" {
				t.Errorf("others (-want, +got):\n%s", diff)
			}
		})
	}
}

func TestAListThatIsNoneIsRefused(t *testing.T) {
	for _, list := range []string{"a-[", "a-[0-99999999]"} {
		if _, _, err := Split(list); err == nil || !strings.Contains(err.Error(), list) {
			t.Errorf("%s: %v", list, err)
		}
	}
}

func FuzzSplit(f *testing.F) {
	f.Add("gpu-[2,0-1],cpu-7")
	f.Add("a-01,b")
	f.Fuzz(func(t *testing.T, list string) {
		groups, others, err := Split(list)
		if err != nil {
			return
		}
		got := slices.Clone(others)
		for _, g := range groups {
			names, err := hostlist.Expand(g.names(g.Ordinals), maxNodes)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, names...)
		}
		want, _ := hostlist.Expand(list, maxNodes)
		for _, names := range []*[]string{&want, &got} {
			slices.Sort(*names)
			*names = slices.Compact(*names)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the nodes (-want, +got):\n%s", diff)
		}
	})
}
