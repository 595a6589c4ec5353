// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/coxswain-hpc/coxswain/internal/render/label"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmrestd"
)

var restarts = flag.String("restarts", "", "accept other pod templates, for this `reason`: which daemons an upgrade of the operator restarts, and why")

// templates is the file with the digests of all pod templates as they were merged last, by what they belong to, with the reasons for
// changes.
const templates = "testdata/templates.txt"

// TestAnUpgradeOfTheOperatorRestartsNothing compares the pod templates of all golden files with those that were landed last. A
// different one replaces the pods of every cluster that has such a component as soon as the operator is upgraded, so users must be
// warned. Workers have a revision instead, which their own tests guard (docs/decisions/004-revision-from-spec.md).
func TestAnUpgradeOfTheOperatorRestartsNothing(t *testing.T) {
	text, err := os.ReadFile(templates)
	if err != nil && *restarts == "" {
		t.Fatal(err)
	}
	reasons, was := parseTemplates(string(text))
	is := digests(t)
	if *restarts != "" {
		if changed(was, is) {
			reasons = append(reasons, "# "+*restarts)
		}
		if err := os.WriteFile(templates, []byte(writeTemplates(reasons, is)), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(was, is); diff != "" {
		t.Errorf("after an upgrade of the operator these pods would be replaced (-landed +now):\n%s\n"+
			"If that has to be, or if they are new: go test ./internal/render -restarts='which daemons, and why'", diff)
	}
}

// digests returns the digests of the pod templates in the golden files of all components, and of what these templates have digests of.
func digests(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("*/testdata/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{
		"what a digest is of": label.Digest(map[string][]byte{"slurm.key": []byte("key"), "slurm.jwks": []byte("{}")}),
		"what a seal is of":   label.Seal([]byte("key"), map[string][]byte{"password": []byte("secret")}),
		"what slurmrestd is restarted for": slurmrestd.ConnectionDigest(
			"ClusterName=a\nSlurmctldHost=a(b)\nSlurmctldPort=6817\nAuthType=auth/slurm\nAccountingStorageHost=c\nKillWait=3\n"),
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
			var workload struct {
				Kind     string
				Metadata struct{ Name string }
				Spec     struct{ Template any }
			}
			if err := yaml.Unmarshal(document, &workload); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if workload.Kind != "StatefulSet" && workload.Kind != "Deployment" {
				continue
			}
			template, err := json.Marshal(workload.Spec.Template)
			if err != nil {
				t.Fatal(err)
			}
			of := strings.Join([]string{strings.Replace(file, "/testdata/", "/", 1), workload.Kind, workload.Metadata.Name}, " ")
			out[of] = label.Digest(map[string][]byte{"template": template})
		}
	}
	if len(out) < 20 {
		t.Fatalf("there are only %d templates", len(out))
	}
	return out
}

// changed reports whether anything that existed before differs now; what is new or gone restarts nothing.
func changed(was, is map[string]string) bool {
	for of, digest := range was {
		if now, ok := is[of]; ok && now != digest {
			return true
		}
	}
	return false
}

func parseTemplates(text string) (reasons []string, out map[string]string) {
	out = map[string]string{}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if of, digest, ok := strings.Cut(line, ": "); ok && !strings.HasPrefix(line, "#") {
			out[of] = digest
		} else if line != "" {
			reasons = append(reasons, line)
		}
	}
	return reasons, out
}

func writeTemplates(reasons []string, digests map[string]string) string {
	var out strings.Builder
	for _, reason := range reasons {
		out.WriteString(reason + "\n")
	}
	for _, of := range slices.Sorted(maps.Keys(digests)) {
		fmt.Fprintf(&out, "%s: %s\n", of, digests[of])
	}
	return out.String()
}
