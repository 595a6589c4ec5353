// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package predecessors gives tests the objects that users of Slinky and Soperator have: what the charts of both render.
package predecessors

import (
	"embed"
	"io/fs"
	"path"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

//go:embed testdata/*.yaml
var files embed.FS

// Manifests are the objects of each file of testdata, as they are, in the order in which they are written.
func Manifests(t testing.TB) map[string][]*unstructured.Unstructured {
	t.Helper()
	paths, err := fs.Glob(files, "testdata/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]*unstructured.Unstructured{}
	for _, name := range paths {
		text, err := files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for document := range strings.SplitSeq("\n"+string(text), "\n---\n") {
			u := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(document), &u.Object); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if len(u.Object) > 0 {
				out[path.Base(name)] = append(out[path.Base(name)], u)
			}
		}
		if len(out[path.Base(name)]) == 0 {
			t.Fatalf("%s has no objects", name)
		}
	}
	return out
}

// FillClaims gives an empty volumeClaimTemplateSpec what Kubernetes asks of every claim. The predecessors' charts render such
// ones, and with them no worker would exist.
func FillClaims(value any) {
	switch value := value.(type) {
	case map[string]any:
		if claim, ok := value["volumeClaimTemplateSpec"].(map[string]any); ok && len(claim) == 0 {
			value["volumeClaimTemplateSpec"] = map[string]any{
				"accessModes": []any{"ReadWriteOnce"}, "resources": map[string]any{"requests": map[string]any{"storage": "1Gi"}},
			}
		}
		for _, below := range value {
			FillClaims(below)
		}
	case []any:
		for _, item := range value {
			FillClaims(item)
		}
	}
}

// Move lets everything in an object that names one namespace name another one.
func Move(value any, from, to string) {
	switch value := value.(type) {
	case map[string]any:
		if value["namespace"] == from && from != "" {
			value["namespace"] = to
		}
		for _, below := range value {
			Move(below, from, to)
		}
	case []any:
		for _, item := range value {
			Move(item, from, to)
		}
	}
}

// JoinChecks lets ActiveChecks name the SlurmCluster beside them. Their chart names the cluster of another release.
func JoinChecks(objects []*unstructured.Unstructured) {
	cluster := ""
	for _, u := range objects {
		if u.GetKind() == "SlurmCluster" {
			cluster = u.GetName()
		}
	}
	for _, u := range objects {
		if spec, ok := u.Object["spec"].(map[string]any); ok && u.GetKind() == "ActiveCheck" {
			spec["slurmClusterRefName"] = cluster
		}
	}
}
