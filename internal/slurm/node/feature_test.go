// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package node_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

func TestParseFeatures(t *testing.T) {
	tests := []struct {
		name, csv string
		want      []string
		err       string
	}{
		{name: "nothing"},
		{name: "some, with blanks, holes and repetitions", csv: " a100,nvlink ,,a100", want: []string{"k8s/a100", "k8s/nvlink"}},
		{name: "a constraint", csv: "a|b", err: `the feature "a|b" has the character '|'; only letters, digits and . _ - : / may be there`},
		{name: "a second line", csv: "a\nb", err: `the feature "a\nb" has the character '\n'; only letters, digits and . _ - : / may be there`},
		{name: "endless text", csv: strings.Repeat("a", 200), err: `the feature "` + strings.Repeat("a", 32) + `"… is longer than 128 characters`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := node.ParseFeatures(tt.csv)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			text := ""
			if err != nil {
				text = err.Error()
			}
			if text != tt.err {
				t.Errorf("error %q, want %q", text, tt.err)
			}
		})
	}
}

func TestWithFeatures(t *testing.T) {
	tests := []struct {
		name       string
		have, ours []string
		want       []string
		changed    bool
	}{
		{"none and none", nil, nil, []string{}, false},
		{"ours are added behind others'", []string{"gpu", "ib"}, []string{"k8s/a"}, []string{"gpu", "ib", "k8s/a"}, true},
		{"ours are there, in whatever order", []string{"k8s/b", "gpu", "k8s/a"}, []string{"k8s/a", "k8s/b"}, []string{"gpu", "k8s/a", "k8s/b"}, false},
		{"ours go, others' stay", []string{"gpu", "k8s/a"}, nil, []string{"gpu"}, true},
		{"one of our features goes and one comes", []string{"k8s/a"}, []string{"k8s/b"}, []string{"k8s/b"}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, changed := node.WithFeatures(tt.have, tt.ours)
			if diff := cmp.Diff(tt.want, got); diff != "" || changed != tt.changed {
				t.Errorf("changed %t, want %t; %s", changed, tt.changed, diff)
			}
		})
	}
}

func FuzzParseFeatures(f *testing.F) {
	f.Add("a100, nvlink")
	f.Add("a,,b\n")
	f.Fuzz(func(t *testing.T, csv string) {
		features, err := node.ParseFeatures(csv)
		if err != nil {
			return
		}
		again, err := node.ParseFeatures(strings.ReplaceAll(strings.Join(features, ","), "k8s/", ""))
		if err != nil || len(again) > len(features) {
			t.Errorf("%q is read as %v, and that as %v, %v", csv, features, again, err)
		}
		with, _ := node.WithFeatures([]string{"gpu"}, features)
		if _, changed := node.WithFeatures(with, features); changed || !slices.Contains(with, "gpu") {
			t.Errorf("%v does not settle", with)
		}
		if strings.ContainsAny(strings.Join(features, ""), "\n\r ,|&()[]\"'\\") {
			t.Errorf("%q is read as %v", csv, features)
		}
	})
}
