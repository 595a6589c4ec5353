// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package podstorage

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

func TestWhatAKubeletSays(t *testing.T) {
	for name, c := range map[string]struct {
		text   string
		want   map[types.UID]uint64
		refuse string
	}{
		"two pods, and what else it says": {
			text: `{"node": {"nodeName": "n", "fs": {"usedBytes": 5}}, "pods": [
				{"podRef": {"name": "a", "namespace": "x", "uid": "u1"}, "containers": [{"rootfs": {"usedBytes": 3}}], "ephemeral-storage": {"availableBytes": 1, "usedBytes": 70}},
				{"podRef": {"name": "a", "namespace": "y", "uid": "u2"}, "ephemeral-storage": {"usedBytes": 0}}]}`,
			want: map[types.UID]uint64{"u1": 70, "u2": 0},
		},
		"a pod that it has not measured yet": {text: `{"pods": [{"podRef": {"uid": "u1"}}, {"podRef": {"uid": "u2"}, "ephemeral-storage": {"inodes": 4}}]}`, want: map[types.UID]uint64{}},
		"a pod without a UID":                {text: `{"pods": [{"podRef": {"name": "a"}, "ephemeral-storage": {"usedBytes": 7}}]}`, want: map[types.UID]uint64{}},
		"no pod":                             {text: `{}`, want: map[types.UID]uint64{}},
		"half an answer":                     {text: `{"pods": [`, refuse: "reading the summary"},
		"something else":                     {text: `<html>`, refuse: "reading the summary"},
		"a negative number":                  {text: `{"pods": [{"podRef": {"uid": "u1"}, "ephemeral-storage": {"usedBytes": -1}}]}`, refuse: "reading the summary"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := decode(strings.NewReader(c.text))
			if c.refuse != "" {
				if err == nil || !strings.Contains(err.Error(), c.refuse) {
					t.Errorf("%v", err)
				}
				return
			}
			if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
				t.Errorf("%v:\n%s", err, diff)
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(`{"pods": [{"podRef": {"uid": "u1"}, "ephemeral-storage": {"usedBytes": 70}}]}`)
	f.Add(`{"pods": null}`)
	f.Add(`{"pods": [{"podRef": {"uid": ""}, "ephemeral-storage": null}]} x`)
	f.Fuzz(func(t *testing.T, text string) {
		used, err := decode(strings.NewReader(text))
		if err != nil && used != nil {
			t.Errorf("%q is refused and read", text)
		}
		if _, empty := used[""]; empty {
			t.Errorf("%q names a pod without a UID", text)
		}
	})
}
