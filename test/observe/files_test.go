// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package observe tests the alerts and dashboards of the chart: their metrics, their queries on a real Prometheus, and when alerts fire.
package observe

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/coxswain-hpc/coxswain/internal/testing/chart"
)

// files is where the chart has alerts.yaml and the dashboards.
var files = filepath.Join("..", "..", "helm", "coxswain", "files")

// A rule is one alert.
type rule struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// rules is the file of the alerts.
type rules struct {
	Groups []struct {
		Name  string `json:"name"`
		Rules []rule `json:"rules"`
	} `json:"groups"`
}

func (r rules) all() []rule {
	var out []rule
	for _, g := range r.Groups {
		out = append(out, g.Rules...)
	}
	return out
}

func readRules(t *testing.T) rules {
	t.Helper()
	return parseRules(t, read(t, filepath.Join(files, "alerts.yaml")))
}

func parseRules(t *testing.T, text []byte) rules {
	t.Helper()
	var out rules
	if err := yaml.UnmarshalStrict(text, &out); err != nil {
		t.Fatal(err)
	}
	if len(out.all()) < 15 {
		t.Fatalf("there are only %d alerts", len(out.all()))
	}
	return out
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// A dashboard is what the tests look at in one of Grafana's.
type dashboard struct {
	UID           string `json:"uid"`
	Title         string `json:"title"`
	SchemaVersion int    `json:"schemaVersion"`
	Templating    struct {
		List []variable `json:"list"`
	} `json:"templating"`
	Panels []panel `json:"panels"`
}

type variable struct {
	Name     string          `json:"name"`
	Type     string          `json:"type"`
	Query    json.RawMessage `json:"query"`
	AllValue string          `json:"allValue"`
	Sort     int             `json:"sort"`
}

// newestFirst is a variable's sort for numbers of jobs: the largest number first.
const newestFirst = 4

type panel struct {
	ID         int       `json:"id"`
	Type       string    `json:"type"`
	Title      string    `json:"title"`
	Datasource source    `json:"datasource"`
	GridPos    rectangle `json:"gridPos"`
	Targets    []struct {
		RefID string `json:"refId"`
		Expr  string `json:"expr"`
	} `json:"targets"`
}

type source struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

type rectangle struct{ X, Y, W, H int }

func (r rectangle) overlaps(o rectangle) bool {
	return r.X < o.X+o.W && o.X < r.X+r.W && r.Y < o.Y+o.H && o.Y < r.Y+r.H
}

// labelValues is the one form of a variable's query that the dashboards have: label_values(SELECTOR, LABEL).
var labelValues = regexp.MustCompile(`^label_values\((.*), (\w+)\)$`)

// query returns the selector and the label whose values the variable has.
func (v variable) query(t *testing.T) (selector, label string) {
	t.Helper()
	var q struct{ Query, RefID string }
	if err := json.Unmarshal(v.Query, &q); err != nil {
		t.Fatal(err)
	}
	match := labelValues.FindStringSubmatch(q.Query)
	if match == nil {
		t.Fatalf("variable %s has the query %q, which is not label_values(SELECTOR, LABEL)", v.Name, q.Query)
	}
	return match[1], match[2]
}

// readDashboards returns the dashboards by the names of their files.
func readDashboards(t *testing.T) map[string]dashboard {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(files, "dashboards", "*.json"))
	if err != nil || len(paths) < 6 {
		t.Fatalf("there are only the dashboards %v, %v", paths, err)
	}
	out := map[string]dashboard{}
	for _, path := range paths {
		var d dashboard
		if err := json.Unmarshal(read(t, path), &d); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		out[filepath.Base(path)] = d
	}
	return out
}

// A query is PromQL of an alert, a panel or a variable.
type query struct{ of, expr string }

// queries returns all of them.
func queries(t *testing.T) []query {
	t.Helper()
	var out []query
	for _, r := range readRules(t).all() {
		out = append(out, query{"alert " + r.Alert, r.Expr})
	}
	for file, d := range readDashboards(t) {
		for _, v := range d.Templating.List {
			if v.Type == "query" {
				of, _ := v.query(t)
				out = append(out, query{fmt.Sprintf("variable %s of %s", v.Name, file), of})
			}
		}
		for _, p := range d.Panels {
			for _, target := range p.Targets {
				out = append(out, query{fmt.Sprintf("panel %d %q of %s", p.ID, p.Title, file), target.Expr})
			}
		}
	}
	return out
}

func TestEveryDashboardIsWhole(t *testing.T) {
	uids := map[string]string{}
	used := regexp.MustCompile(`\$(\w+)`)
	for file, d := range readDashboards(t) {
		if other, taken := uids[d.UID]; taken || d.UID != "coxswain-"+strings.TrimSuffix(file, ".json") {
			t.Errorf("%s has uid %s, as %s", file, d.UID, other)
		}
		uids[d.UID] = file
		if d.SchemaVersion < 38 || d.Title == "" { // 38 is that of Grafana 10.0
			t.Errorf("%s has schema version %d and title %q", file, d.SchemaVersion, d.Title)
		}
		known := []string{"__rate_interval", "__range", "1"} // $1 is of label_replace
		for _, v := range d.Templating.List {
			for _, match := range used.FindAllStringSubmatch(string(v.Query), -1) {
				if !slices.Contains(known, match[1]) {
					t.Errorf("%s: variable %s asks for $%s, which no variable before it is", file, v.Name, match[1])
				}
			}
			known = append(known, v.Name)
		}
		if !slices.Contains(known, "datasource") {
			t.Errorf("%s has no variable for the data source", file)
		}
		for i, p := range d.Panels {
			for _, other := range d.Panels[:i] {
				if other.ID == p.ID || other.GridPos.overlaps(p.GridPos) {
					t.Errorf("%s: panels %q and %q have the same id or place", file, other.Title, p.Title)
				}
			}
			if p.Title == "" || p.GridPos.X+p.GridPos.W > 24 {
				t.Errorf("%s: panel %d %q at %+v has no title, or is wider than 24", file, p.ID, p.Title, p.GridPos)
			}
			if p.Type == "row" {
				continue
			}
			if p.Datasource != (source{"prometheus", "${datasource}"}) || len(p.Targets) == 0 {
				t.Errorf("%s: panel %q asks nothing, or of %+v", file, p.Title, p.Datasource)
			}
			for _, target := range p.Targets {
				for _, match := range used.FindAllStringSubmatch(target.Expr, -1) {
					if !slices.Contains(known, match[1]) {
						t.Errorf("%s: panel %q has $%s, which is no variable", file, p.Title, match[1])
					}
				}
			}
		}
	}
}

// TestLinksLeadToDashboards checks the links from a table to another dashboard, and the variables that they set there.
func TestLinksLeadToDashboards(t *testing.T) {
	variables := map[string][]string{}
	for _, d := range readDashboards(t) {
		for _, v := range d.Templating.List {
			variables[d.UID] = append(variables[d.UID], v.Name)
		}
	}
	link, set := regexp.MustCompile(`"/d/([\w-]+)\?([^"]*)"`), regexp.MustCompile(`(?:^|&)var-(\w+)=`)
	count := 0
	for file := range readDashboards(t) {
		for _, match := range link.FindAllStringSubmatch(string(read(t, filepath.Join(files, "dashboards", file))), -1) {
			count++
			var got []string
			for _, v := range set.FindAllStringSubmatch(match[2], -1) {
				got = append(got, v[1])
			}
			if want := variables[match[1]]; len(want) == 0 || !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))) {
				t.Errorf("%s: a link to %s sets %v, and its variables are %v", file, match[1], got, want)
			}
		}
	}
	if count < 3 {
		t.Errorf("there are only %d links", count)
	}
}

func TestEveryAlertSaysWhatToDo(t *testing.T) {
	page := string(read(t, filepath.Join("..", "..", "docs", "administrators", "observe.md")))
	const address = "https://github.com/coxswain-hpc/coxswain/blob/main/docs/administrators/observe.md#"
	seen := map[string]bool{}
	for _, r := range readRules(t).all() {
		if seen[r.Alert] {
			t.Errorf("there are two alerts %s", r.Alert)
		}
		seen[r.Alert] = true
		if !slices.Contains([]string{"critical", "warning", "info"}, r.Labels["severity"]) {
			t.Errorf("%s has severity %q", r.Alert, r.Labels["severity"])
		}
		if got, want := slices.Sorted(maps.Keys(r.Annotations)), []string{"description", "runbook_url", "summary"}; !slices.Equal(got, want) {
			t.Errorf("%s has annotations %v, want %v", r.Alert, got, want)
		}
		if want := address + strings.ToLower(r.Alert); r.Annotations["runbook_url"] != want {
			t.Errorf("%s has runbook %s, want %s", r.Alert, r.Annotations["runbook_url"], want)
		}
		_, section, found := strings.Cut(page, "\n### "+r.Alert+"\n")
		section, _, _ = strings.Cut(section, "\n### ")
		if !found || len(strings.Fields(section)) < 20 {
			t.Errorf("docs/administrators/observe.md says nothing of %s, or too little", r.Alert)
		}
	}
	for _, match := range regexp.MustCompile(`(?m)^### ((?:Slurm|Coxswain)\w+)$`).FindAllStringSubmatch(page, -1) {
		if !seen[match[1]] {
			t.Errorf("docs/administrators/observe.md has %s, which is no alert", match[1])
		}
	}
}

// TestTheLedgerKnowsEveryOwner compares the owners of dashboard health.json with the table of docs/administrators/health.md.
func TestTheLedgerKnowsEveryOwner(t *testing.T) {
	_, table, _ := strings.Cut(string(read(t, filepath.Join("..", "..", "docs", "administrators", "health.md"))), "| reason | who took the node out |")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (the operator|Slurm|a check|a person)").FindAllStringSubmatch(table, -1)
	if len(rows) < 12 || len(rows) != strings.Count(table, "\n| `") {
		t.Fatalf("the table has %d reasons that can be read", len(rows))
	}
	replaced := regexp.MustCompile(`"owner", "([^"]+)", "reason", "([^"]+)"`)
	got := map[string]string{}
	for _, q := range queries(t) {
		for _, match := range replaced.FindAllStringSubmatch(q.expr, -1) {
			for reason := range strings.SplitSeq(match[2], "|") {
				got[reason] = match[1]
			}
		}
	}
	for _, row := range rows {
		if got[row[1]] != row[2] {
			t.Errorf("the ledger says %q took out workers with reason %s, docs/administrators/health.md says %s", got[row[1]], row[1], row[2])
		}
		delete(got, row[1])
	}
	if len(got) > 0 {
		t.Errorf("the ledger has reasons that there are not: %v", got)
	}
}

func TestTheChartGivesOutWhatIsTested(t *testing.T) {
	text := chart.Render(t, "coxswain", "sys", "--set", "observe.alerts.enabled=true,observe.dashboards.enabled=true", "--show-only", "templates/observe.yaml")
	boards := 0
	for _, document := range chart.Documents(text) {
		var o struct {
			Kind string            `json:"kind"`
			Data map[string]string `json:"data"`
			Spec json.RawMessage   `json:"spec"`
		}
		if err := yaml.Unmarshal(document, &o); err != nil {
			t.Fatal(err)
		}
		switch o.Kind {
		case "PrometheusRule":
			got, err := json.Marshal(parseRules(t, o.Spec))
			if err != nil {
				t.Fatal(err)
			}
			want, err := json.Marshal(readRules(t))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("the PrometheusRule has %s, want %s", got, want)
			}
			boards += 100
		case "ConfigMap":
			for file, text := range o.Data {
				if want := read(t, filepath.Join(files, "dashboards", strings.TrimPrefix(file, "coxswain-"))); text != string(want) {
					t.Errorf("the ConfigMap has another %s", file)
				}
				boards++
			}
		default:
			t.Errorf("the chart makes a %s", o.Kind)
		}
	}
	if want := 100 + len(readDashboards(t)); boards != want {
		t.Errorf("the chart makes not one PrometheusRule and all dashboards: %d, want %d", boards, want)
	}
}
