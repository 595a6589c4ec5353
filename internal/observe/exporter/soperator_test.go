// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package exporter

import (
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

// Dashboards of Soperator's users have its metrics by name, type and labels: those of the page about them.
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
	promised := promisedMetrics(t)
	if len(promised) < 33 {
		t.Fatalf("the page has only %d metrics", len(promised))
	}
	for name, want := range promised {
		if shown[name] != want {
			t.Errorf("%s is %q of the predecessor, here %q", name, want, shown[name])
		}
	}
}

var quoted = regexp.MustCompile("`([a-z_]+)`")

// promisedMetrics returns type and labels of each metric in the tables of soperator-metrics.md, in the newest version.
func promisedMetrics(t *testing.T) map[string]string {
	t.Helper()
	root, err := checkout.Dir()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "docs", "contributors", "predecessors", "soperator-metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	types, labels := map[string]string{}, map[string][]string{}
	heading := ""
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			heading = ""
			continue
		}
		if heading == "" {
			heading = line
			continue
		}
		if _, of, ok := strings.Cut(heading, "labels of "); ok { // the long lists of labels have tables of their own
			name := words(of)[0]
			labels[name] = append(labels[name], words(cells[2])...)
		} else if strings.HasPrefix(heading, "| metric |") {
			for _, name := range words(cells[1]) {
				types[name] = strings.TrimSpace(cells[2])
				labels[name] = append(labels[name], words(cells[3])...)
			}
		}
	}
	out := map[string]string{}
	for name, kind := range types {
		slices.Sort(labels[name])
		out[name] = kind + " " + strings.Join(labels[name], ",")
	}
	return out
}

// words are what a cell has in backquotes.
func words(cell string) []string {
	var out []string
	for _, match := range quoted.FindAllStringSubmatch(cell, -1) {
		out = append(out, match[1])
	}
	return out
}
