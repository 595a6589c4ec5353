// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestCommentIsOneLineOfJSON(t *testing.T) {
	c := Comment{Namespace: "ns1", PodName: "demo-gpu-0", Node: "k8s-1"}
	if got, want := c.String(), `{"namespace":"ns1","podName":"demo-gpu-0","node":"k8s-1"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	c.NodeSetName, c.NodeSetUID = "gpu", "u-1"
	if got, want := c.String(), `{"namespace":"ns1","podName":"demo-gpu-0","node":"k8s-1","nodeSetName":"gpu","nodeSetUID":"u-1"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestParseComment(t *testing.T) {
	tests := []struct {
		name, text string
		want       Comment
		ok         bool
	}{
		{"a comment of ours", `{"namespace":"n","podName":"p","node":"k","nodeSetName":"s","nodeSetUID":"u","registration":"r","nvlinkInstanceGroup":"g","check":"c","drainedFor":"d","drainedAt":"a","drainedOn":"m"}`, Comment{"n", "p", "k", "s", "u", "r", "g", "c", "d", "a", "m"}, true},
		{"of an older operator", `{"namespace":"n","podName":"p","node":"k"}`, Comment{Namespace: "n", PodName: "p", Node: "k"}, true},
		{"with keys of a newer operator", `{"podName":"p","x":{"y":[1]}}`, Comment{PodName: "p"}, true},
		{"with values of the wrong type", `{"podName":"p","node":7}`, Comment{PodName: "p"}, true},
		{"keys have a case", `{"PODNAME":"p"}`, Comment{}, false},
		{"without a pod", `{"namespace":"n"}`, Comment{}, false},
		{"a user's words", "in repair", Comment{}, false},
		{"other JSON", `["podName"]`, Comment{}, false},
		{"null", `null`, Comment{}, false},
		{"nothing", "", Comment{}, false},
		{"half of a comment", `{"podName":"p"`, Comment{}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := ParseComment(tt.text)
			if diff := cmp.Diff(tt.want, got); diff != "" || ok != tt.ok {
				t.Errorf("%t %s", ok, diff)
			}
		})
	}
}

func TestParseCommentUndoesString(t *testing.T) {
	name := rapid.StringMatching(`[a-z0-9"\\<>é-]{1,10}`)
	rapid.Check(t, func(t *rapid.T) {
		c := Comment{name.Draw(t, "ns"), name.Draw(t, "pod"), name.Draw(t, "node"), name.Draw(t, "set"), name.Draw(t, "uid"), name.Draw(t, "registration"), name.Draw(t, "group"), name.Draw(t, "check"),
			name.Draw(t, "reason"), name.Draw(t, "time"), name.Draw(t, "machine")}
		if got, ok := ParseComment(c.String()); !ok || got != c {
			t.Fatalf("%+v became %+v", c, got)
		}
	})
}

func FuzzParseComment(f *testing.F) {
	f.Add(`{"namespace":"n","podName":"p","node":"k"}`)
	f.Add("x")
	f.Fuzz(func(t *testing.T, text string) {
		c, ok := ParseComment(text)
		if !ok && c != (Comment{}) {
			t.Fatalf("%+v", c)
		}
		if again, _ := ParseComment(c.String()); ok && again != c {
			t.Fatalf("%+v became %+v", c, again)
		}
	})
}
