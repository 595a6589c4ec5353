// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package conf_test

import (
	"strings"
	"testing"

	"github.com/coxswain-hpc/coxswain/internal/slurm/conf"
)

// What a slurmctld and a slurmd 26.05.5 logged, or did not, with these lines.
func TestAHealthCheckHasToEndBeforeTheNext(t *testing.T) {
	for name, test := range map[string]struct{ lines, want string }{
		"no health check":                                               {"ClusterName=a", ""},
		"the health check is turned off":                                {"HealthCheckProgram=/h\nHealthCheckInterval=0", ""},
		"the health check is turned off, with a timeout":                {"HealthCheckInterval=0\nHealthCheckTimeout=30", ""},
		"an interval above the default timeout":                         {"HealthCheckProgram=/h\nHealthCheckInterval=61", ""},
		"an interval of the default timeout":                            {"HealthCheckProgram=/h\nHealthCheckInterval=60", "set HealthCheckTimeout=59 if no image"},
		"an interval below the default timeout":                         {"healthcheckinterval=30", "HealthCheckTimeout (60 seconds) is not less than HealthCheckInterval; set HealthCheckTimeout=29 if no image"},
		"an interval below the default timeout, with a shorter timeout": {"HealthCheckInterval=30\nHealthCheckTimeout=29", ""},
		"with a timeout that is as long":                                {"HealthCheckInterval=300\nHealthCheckTimeout=300", "(300 seconds) is not less than HealthCheckInterval; set HealthCheckTimeout=299"},
		"with a timeout that Slurm does not take":                       {"HealthCheckInterval=30\nHealthCheckTimeout=0", "(60 seconds)"},
		"no timeout is less than a second":                              {"HealthCheckInterval=1\nHealthCheckTimeout=1", "make HealthCheckInterval at least 2"},
		"another mistake is told by another check":                      {"HealthCheckInterval=soon", ""},
	} {
		t.Run(name, func(t *testing.T) {
			d, mistakes := conf.Parse(conf.Slurm, test.lines)
			if len(mistakes) > 0 {
				t.Fatal(mistakes)
			}
			got := ""
			for _, p := range d.CheckHealthCheck() {
				got += p.Error()
			}
			if !strings.Contains(got, test.want) || test.want == "" && got != "" {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}
