// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"flag"
	"os/exec"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
)

var required = flag.Bool("observe.required", false, "fail where a machine without Prometheus would skip tests")

func TestMain(m *testing.M) { apiserver.Main(m) }

// program returns the path of a program of Debian's package prometheus. The test is skipped without it, or fails when it is required.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		if *required {
			t.Fatalf("%v; install Debian's package prometheus", err)
		}
		t.Skipf("%v; install Debian's package prometheus", err)
	}
	return path
}

// unitTests returns the files in which promtool finds when alerts fire.
func unitTests(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", "alerts*_test.yaml"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("there are no unit tests of alerts: %v", err)
	}
	return paths
}

func TestAlertsFireWhenTheyShould(t *testing.T) {
	t.Parallel()
	promtool := program(t, "promtool")
	for _, args := range [][]string{
		{"check", "rules", filepath.Join(files, "alerts.yaml")},
		append([]string{"test", "rules"}, unitTests(t)...),
	} {
		if out, err := exec.CommandContext(t.Context(), promtool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
}

// TestEveryAlertIsTested checks that promtool sees each alert fire, not before its time, and end.
func TestEveryAlertIsTested(t *testing.T) {
	type life struct{ before, fires, after bool }
	seen := map[string]life{}
	for _, path := range unitTests(t) {
		var file struct {
			Tests []struct {
				AlertRuleTest []struct {
					AlertName string `json:"alertname"`
					ExpAlerts []any  `json:"exp_alerts"`
				} `json:"alert_rule_test"`
			} `json:"tests"`
		}
		if err := yaml.Unmarshal(read(t, path), &file); err != nil {
			t.Fatal(err)
		}
		for _, test := range file.Tests {
			var l life
			for _, at := range test.AlertRuleTest {
				switch {
				case len(at.ExpAlerts) > 0:
					l.fires = true
				case l.fires:
					l.after = true
				default:
					l.before = true
				}
				if all := (life{true, true, true}); l == all {
					seen[at.AlertName] = all
				}
			}
		}
	}
	for _, r := range readRules(t).all() {
		if seen[r.Alert] != (life{true, true, true}) {
			t.Errorf("no unit test sees %s quiet, firing, and quiet again", r.Alert)
		}
	}
}
