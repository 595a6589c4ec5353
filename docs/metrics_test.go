// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"k8s.io/utils/clock"

	"github.com/coxswain-hpc/coxswain/internal/controller/slinky/nodeset"
	"github.com/coxswain-hpc/coxswain/internal/health"
	"github.com/coxswain-hpc/coxswain/internal/health/budget"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
)

// TestThePageOfMetricsIsThatOfTheCollectors compares administrators/metrics.md with what the operator registers.
func TestThePageOfMetricsIsThatOfTheCollectors(t *testing.T) {
	described := make(chan *prometheus.Desc, 100)
	slurmcache.NewRegistry(slurmcache.Options{}).Describe(described)
	nodeset.Metrics(nil, budget.New(health.DrainLimit{}, clock.RealClock{})).Describe(described)
	close(described)
	form := regexp.MustCompile(`^Desc\{fqName: ("[^"]+"), help: (".*"), unit: "", constLabels: \{\}, variableLabels: \{([^}]*)\}\}$`)
	var rows []string
	for desc := range described {
		match := form.FindStringSubmatch(desc.String())
		if match == nil {
			t.Fatalf("%s is not in the form that this test reads", desc)
		}
		name, help := unquoted(t, match[1]), unquoted(t, match[2])
		labels := strings.ReplaceAll(match[3], ",", "`, `")
		rows = append(rows, fmt.Sprintf("| `%s` | `%s` | %s |\n", name, labels, escaped(help)))
	}
	slices.Sort(rows)
	compare(t, "administrators/metrics.md", "\n| metric | labels | meaning |\n|---|---|---|\n"+strings.Join(rows, ""))
}

// TestNobodyElseRegistersMetrics keeps the test above whole: who defines metrics is read by it.
func TestNobodyElseRegistersMetrics(t *testing.T) {
	defines := regexp.MustCompile(`prometheus\.(New|MustNew|\w+Opts)`)
	count := 0
	walk(t, func(path, text string) {
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || !strings.HasPrefix(path, "internal/") && !strings.HasPrefix(path, "cmd/") {
			return
		}
		if defines.MatchString(text) {
			count++
			if !strings.HasPrefix(path, "internal/slurm/slurmcache/") && path != "internal/controller/slinky/nodeset/report.go" && !strings.HasPrefix(path, "internal/observe/exporter/") {
				t.Errorf("%s defines metrics; let TestThePageOfMetricsIsThatOfTheCollectors describe them", path)
			}
		}
	})
	if count == 0 {
		t.Error("nobody defines metrics")
	}
}

// TestThePageOfTheExporterHasItsMetrics compares administrators/exporter.md with what the exporter's own tests see it show.
func TestThePageOfTheExporterHasItsMetrics(t *testing.T) {
	var out strings.Builder
	for _, part := range []struct{ title, file string }{{"Of the cluster", "cluster.txt"}, {"Of the exporter", "own.txt"}} {
		text, err := os.ReadFile(filepath.Join(root, "internal", "observe", "exporter", "testdata", part.file))
		if err != nil {
			t.Fatal(err)
		}
		parser := expfmt.NewTextParser(model.UTF8Validation)
		families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
		if err != nil || len(families) < 10 {
			t.Fatalf("%s has %d metrics, %v", part.file, len(families), err)
		}
		fmt.Fprintf(&out, "\n### %s\n\n| metric | type | labels | meaning |\n|---|---|---|---|\n", part.title)
		for _, name := range slices.Sorted(maps.Keys(families)) {
			f := families[name]
			var labels []string
			for _, l := range f.Metric[0].Label {
				labels = append(labels, "`"+l.GetName()+"`")
			}
			fmt.Fprintf(&out, "| `%s` | %s | %s | %s |\n", name, strings.ToLower(f.GetType().String()), strings.Join(labels, ", "), escaped(f.GetHelp()))
		}
	}
	compare(t, "administrators/exporter.md", out.String())
}

func unquoted(t *testing.T, text string) string {
	t.Helper()
	out, err := strconv.Unquote(text)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
