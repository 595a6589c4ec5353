// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package exporter

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/coxswain-hpc/coxswain/internal/testing/checkout"
)

// Dashboards of Soperator's users have its metrics by name, type and labels.
func TestTheMetricsOfSoperatorAreThere(t *testing.T) {
	shown := map[string]string{}
	for _, file := range []string{"testdata/cluster.txt", "testdata/own.txt"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		parser := expfmt.NewTextParser(model.UTF8Validation)
		families, err := parser.TextToMetricFamilies(strings.NewReader(string(text)))
		if err != nil {
			t.Fatal(err)
		}
		for name, f := range families {
			labels := map[string]bool{}
			for _, m := range f.Metric {
				for _, l := range m.Label {
					labels[l.GetName()] = true
				}
			}
			shown[name] = strings.ToLower(f.GetType().String()) + " " + strings.Join(slices.Sorted(maps.Keys(labels)), ",")
		}
	}
	root, err := checkout.Dir()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(root, "..", "shared", "contract", "metrics")
	entry := regexp.MustCompile(`(?m)^(slurm_\S+) \| type=(\w+) \| labels=(\S+) `)
	for _, file := range []string{"metrics-soperator-seed.txt", "metrics-soperator-5.0.txt"} {
		text, err := os.ReadFile(filepath.Join(dir, file))
		if errors.Is(err, fs.ErrNotExist) {
			t.Skip("there is no contract here")
		}
		if err != nil {
			t.Fatal(err)
		}
		found := entry.FindAllStringSubmatch(string(text), -1)
		if len(found) < 20 {
			t.Fatalf("%s has only %d metrics", file, len(found))
		}
		for _, m := range found {
			name, kind, labels := m[1], m[2], strings.TrimPrefix(m[3], "(none)")
			if kind == "histogram" {
				base, ok := strings.CutSuffix(name, "_count")
				if !ok {
					continue // the parser makes one of the three
				}
				name = base
			}
			// The first version had fewer labels.
			got, ok := shown[name]
			if gotKind, gotLabels, _ := strings.Cut(got, " "); !ok || gotKind != kind || !hasAll(gotLabels, labels) || strings.Contains(file, "5.0") && gotLabels != labels {
				t.Errorf("%s: %s is %s with labels %s, here %q", file, name, kind, labels, got)
			}
		}
	}
}

func hasAll(have, want string) bool {
	for label := range strings.SplitSeq(want, ",") {
		if !slices.Contains(strings.Split(have, ","), label) && label != "" {
			return false
		}
	}
	return true
}
