// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"strings"
	"testing"
)

func TestAHealthCheckIntervalThatSlurmComplainsOfIsTold(t *testing.T) {
	const note = "spec.healthCheckConfig: HealthCheckInterval="
	for name, test := range map[string]struct {
		interval, rest string
		told           bool
	}{
		"the chart's interval is not told":                               {interval: "300"},
		"an interval of the default timeout is told":                     {interval: "60", told: true},
		"an interval above a timeout in the user's own text is not told": {interval: "60", rest: `, customSlurmConfig: "HealthCheckTimeout=50"`},
		"an interval in the user's own text is told":                     {interval: "300", rest: `, customSlurmConfig: "HealthCheckInterval=5"`, told: true},
		"a health check that is turned off is not told":                  {interval: "0"},
		"Slurm 24.11 has a timeout that nobody can set":                  {interval: "60", rest: `, slurmNodes: {worker: {size: 1}, controller: {slurmctld: {image: "example.com/slurmctld:24.11"}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			out := Cluster(load(t).cluster(t, `{healthCheckConfig: {healthCheckInterval: `+test.interval+`, healthCheckProgram: /h, healthCheckNodeState: [{state: ANY}]}`+test.rest+`}`))
			if len(out.Problems) > 0 {
				t.Fatal(out.Problems)
			}
			notes := strings.Join(out.Notes, "\n")
			if strings.Contains(notes, note) != test.told {
				t.Errorf("notes are %q", notes)
			}
		})
	}
}
