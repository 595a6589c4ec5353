// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package topology_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-hpc/coxswain/internal/slurm/topology"
)

func TestParse(t *testing.T) {
	tests := []struct {
		name, text string
		want       topology.Spec
		err        string
	}{
		{name: "nothing is no topology", text: " "},
		{name: "a block", text: "topo-block:b2", want: topology.Spec{{"topo-block", []string{"b2"}}}},
		{name: "a leaf and a block", text: "topo-switch:s2, topo-block:b2", want: topology.Spec{{"topo-switch", []string{"s2"}}, {"topo-block", []string{"b2"}}}},
		{name: "a way through a tree", text: "default:spine1:leaf3", want: topology.Spec{{"default", []string{"spine1", "leaf3"}}}},
		{name: "a unit without topology", text: "s2", err: `"s2" is not of the form topology:unit`},
		{name: "a topology without unit", text: "default:", err: `in "default:": a name is empty`},
		{name: "a comma at the end", text: "default:s1,", err: `"" is not of the form topology:unit`},
		{name: "a topology twice", text: "a:x,a:y", err: `topology "a" is named twice`},
		{name: "a hostlist", text: "default:s[1-2]", err: `in "default:s[1-2]": the name "s[1-2]" has the character '['; only letters, digits and . _ - may be there`},
		{name: "a second line", text: "default:s1\nState=DOWN", err: `in "default:s1\nState=DOWN": the name "s1\nState=DOWN" has the character '\n'; only letters, digits and . _ - may be there`},
		{name: "endless text", text: strings.Repeat("a", 5000), err: "the topology is longer than 4096 bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := topology.Parse(tt.text)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			if text := errorText(err); text != tt.err {
				t.Errorf("error %q, want %q", text, tt.err)
			}
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestSame(t *testing.T) {
	tests := []struct {
		name, a, b string
		want       bool
	}{
		{"two empty topologies", "", "", true},
		{"in another order", "a:x,b:y", "b:y,a:x", true},
		{"with and without the switches above", "a:spine:leaf", "a:leaf", true},
		{"another leaf", "a:spine:leaf1", "a:spine:leaf2", false},
		{"another topology", "a:x", "b:x", false},
		{"a topology more on one side", "a:x", "a:x,b:y", false},
		{"no topology on one side", "a:x", "", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, errA := topology.Parse(tt.a)
			b, errB := topology.Parse(tt.b)
			if errA != nil || errB != nil {
				t.Fatal(errA, errB)
			}
			if a.Same(b) != tt.want || b.Same(a) != tt.want {
				t.Errorf("%v and %v: %t and %t, want %t", a, b, a.Same(b), b.Same(a), tt.want)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"", "a:b", "topo-switch:s2,topo-block:b2", "a:b:c, d:e", "a:", ":", ",", "a:b,a:c"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		spec, err := topology.Parse(text)
		if err != nil {
			return
		}
		again, err := topology.Parse(spec.String())
		if err != nil || !again.Same(spec) || again.String() != spec.String() {
			t.Errorf("%q is read as %v, written as %q and read as %v, %v", text, spec, spec.String(), again, err)
		}
		if strings.ContainsAny(spec.String(), "\n\r \"'\\") {
			t.Errorf("%q is written as %q", text, spec.String())
		}
	})
}
