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
		"the chart's interval":                          {interval: "300"},
		"not more than the default timeout":             {interval: "60", told: true},
		"with a timeout in the user's own text":         {interval: "60", rest: `, customSlurmConfig: "HealthCheckTimeout=50"`},
		"with an interval in the user's text":           {interval: "300", rest: `, customSlurmConfig: "HealthCheckInterval=5"`, told: true},
		"turned off":                                    {interval: "0"},
		"Slurm 24.11 has a timeout that nobody can set": {interval: "60", rest: `, slurmNodes: {worker: {size: 1}, controller: {slurmctld: {image: "example.com/slurmctld:24.11"}}}`},
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
