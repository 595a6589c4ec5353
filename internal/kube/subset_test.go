// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

func TestDifference(t *testing.T) {
	deployment := schema.GroupKind{Group: "apps", Kind: "Deployment"}
	service := schema.GroupKind{Kind: "Service"}
	policy := schema.GroupKind{Group: "networking.k8s.io", Kind: "NetworkPolicy"}
	tests := []struct {
		name          string
		kind          schema.GroupKind
		desired, live string
		want          string
	}{
		{"a field more in the live object is no difference", deployment, `{a: 1}`, `{a: 1, b: 2}`, ""},
		{"a field less in the live object is a difference", deployment, `{a: {b: 1, c: 2}}`, `{a: {b: 1}}`, "a.c"},
		{"an empty map is not an absent one", deployment, `{a: {}}`, `{}`, "a"},
		{"an empty map with something in it has defaults, as a rule", deployment, `{a: {}}`, `{a: {b: 1}}`, ""},
		{"an emptyDir of ours has nothing that we did not write", deployment,
			`{volumes: [{name: v, emptyDir: {}}]}`, `{volumes: [{name: v, emptyDir: {medium: Memory}}]}`, "volumes[v].emptyDir"},
		{"a volume has one source", deployment, `{volumes: [{name: v, emptyDir: {}}]}`, `{volumes: [{name: v, emptyDir: {}, hostPath: {}}]}`, "volumes[v]"},
		{"a source of a volume has defaults", deployment, `{volumes: [{name: v, secret: {secretName: s}}]}`, `{volumes: [{name: v, secret: {secretName: s, defaultMode: 420}}]}`, ""},
		{"a claim's emptyDir is somebody else's word", service, `{emptyDir: {}}`, `{emptyDir: {a: 1}}`, ""},
		{"an empty list equals an absent one", deployment, `{a: []}`, `{}`, ""},
		{"null equals anything", deployment, `{a: null}`, `{a: 1}`, ""},
		{"false is not absent", deployment, `{a: false}`, `{}`, "a"},
		{"another type is a difference", deployment, `{a: {b: 1}}`, `{a: [1]}`, "a"},
		{"an empty list is not a full one", deployment, `{args: []}`, `{args: [a]}`, "args"},
		{"an unkeyed list is compared by position", deployment, `{args: [a, b]}`, `{args: [b, a]}`, "args[0]"},
		{"an unkeyed list must not be longer", deployment, `{args: [a]}`, `{args: [a, b]}`, "args"},
		{"a keyed list may be in any order and longer", deployment,
			`{containers: [{name: a, image: x}, {name: b}]}`, `{containers: [{name: i}, {name: b}, {name: a, image: x}]}`, ""},
		{"an item of a keyed list that is gone is a difference", deployment, `{containers: [{name: a}]}`, `{containers: [{name: b}]}`, "containers[a]"},
		{"a difference within a keyed item names it", deployment, `{env: [{name: A, value: "1"}]}`, `{env: [{name: A, value: "2"}]}`, "env[A].value"},
		{"the default protocol is part of a port's key", deployment,
			`{ports: [{containerPort: 53, name: t}, {containerPort: 53, protocol: UDP, name: u}]}`,
			`{ports: [{containerPort: 53, protocol: UDP, name: u}, {containerPort: 53, protocol: TCP, name: t}]}`, ""},
		{"ports of a Service are keyed by port and protocol", service, `{ports: [{port: 1, name: a}]}`, `{ports: [{port: 2}, {port: 1, protocol: TCP, name: a, nodePort: 3}]}`, ""},
		{"ports of a NetworkPolicy are not keyed: one more opens a port", policy, `{ports: [{port: 1}]}`, `{ports: [{port: 1}, {port: 2}]}`, "ports"},
		{"a selector with one more label is another selector", service, `{selector: {a: "1"}}`, `{selector: {a: "1", b: "2"}}`, "selector"},
		{"a finalizer of somebody else is none of our business", service, `{finalizers: [a]}`, `{finalizers: [b, a]}`, ""},
		{"our finalizer must be there", service, `{finalizers: [a]}`, `{finalizers: [b]}`, "finalizers"},
		{"the intent is not a field", service, `{annotations: {coxswain.dev/intent: a}}`, `{annotations: {coxswain.dev/intent: b}}`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var desired, live map[string]any
			for text, into := range map[string]*map[string]any{tt.desired: &desired, tt.live: &live} {
				if err := yaml.Unmarshal([]byte(text), into); err != nil {
					t.Fatal(err)
				}
			}
			if got := difference(tt.kind, desired, live); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
