// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// table shows figures as a table in Markdown: a row for each scenario and figure in the order in which they came first, and a
// column for each number of workers. The last line of several for one cell counts.
func table(figures []figure) string {
	type row struct{ scenario, figure string }
	var rows []row
	var sizes []int
	cells, units := map[row]map[int]string{}, map[row]string{}
	for _, f := range figures {
		r := row{f.Scenario, f.Figure}
		if cells[r] == nil {
			rows, cells[r] = append(rows, r), map[int]string{}
		}
		if !slices.Contains(sizes, f.Workers) {
			sizes = append(sizes, f.Workers)
		}
		cells[r][f.Workers], units[r] = shown(f.Value), f.Unit
	}
	slices.Sort(sizes)
	var b strings.Builder
	b.WriteString("| workers |")
	for _, size := range sizes {
		fmt.Fprintf(&b, " %d |", size)
	}
	b.WriteString(" |\n|---|" + strings.Repeat("---|", len(sizes)+1) + "\n")
	last := ""
	for _, r := range rows {
		name := r.figure
		if r.scenario != last {
			name, last = "**"+r.scenario+"**: "+name, r.scenario
		}
		fmt.Fprintf(&b, "| %s |", name)
		for _, size := range sizes {
			fmt.Fprintf(&b, " %s |", cells[r][size])
		}
		fmt.Fprintf(&b, " %s |\n", units[r])
	}
	return b.String()
}

// shown returns a value with as many digits as mean something.
func shown(value float64) string {
	if value == math.Trunc(value) || math.Abs(value) >= 100 {
		return strconv.FormatFloat(value, 'f', 0, 64)
	}
	return strconv.FormatFloat(value, 'g', 2, 64)
}

// writeTable writes the figures of the file as a table beside it.
func writeTable(t *testing.T) {
	t.Helper()
	if *out == "" {
		return
	}
	file, err := os.Open(*out)
	if err != nil {
		t.Error(err) // nothing was measured
		return
	}
	defer file.Close() //nolint:errcheck // it is only read
	var figures []figure
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var f figure
		if err := json.Unmarshal(lines.Bytes(), &f); err != nil {
			t.Fatalf("reading %s: %v", *out, err)
		}
		figures = append(figures, f)
	}
	if err := os.WriteFile(strings.TrimSuffix(*out, ".jsonl")+".md", []byte(table(figures)), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestFiguresAreShownAsATable(t *testing.T) {
	got := table([]figure{
		{Workers: 100, Scenario: "create", Figure: "all pods exist", Value: 0.8561, Unit: "s"},
		{Workers: 100, Scenario: "create", Figure: "API writes", Value: 219},
		{Workers: 5000, Scenario: "create", Figure: "all pods exist", Value: 146.117, Unit: "s"},
		{Workers: 5000, Scenario: "restart", Figure: "API writes", Value: 0},
	})
	want := `| workers | 100 | 5000 | |
|---|---|---|---|
| **create**: all pods exist | 0.86 | 146 | s |
| API writes | 219 |  |  |
| **restart**: API writes |  | 0 |  |
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
