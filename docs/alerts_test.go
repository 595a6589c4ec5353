// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestThePageOfAlertsIsThatOfTheRules compares the table of administrators/observe.md with the alerts of the chart.
func TestThePageOfAlertsIsThatOfTheRules(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "helm", "coxswain", "files", "alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Rules []struct {
				Alert               string
				For                 string
				Labels, Annotations map[string]string
			}
		}
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	label := regexp.MustCompile(`\{\{ \$labels\.(\w+) \}\}`)
	var out strings.Builder
	out.WriteString("\n| alert | severity | for | what it says |\n|---|---|---|---|\n")
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			summary := label.ReplaceAllStringFunc(r.Annotations["summary"], func(match string) string {
				return "`" + strings.ToUpper(label.FindStringSubmatch(match)[1]) + "`"
			})
			fmt.Fprintf(&out, "| [%s](#%s) | %s | %s | %s |\n", r.Alert, strings.ToLower(r.Alert), r.Labels["severity"], cmp.Or(r.For, "0"), summary)
		}
	}
	compare(t, "administrators/observe.md", out.String())
}
