// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"fmt"
	"strconv"
)

// HealthCheckRelease is the first Slurm release with the key HealthCheckTimeout. Daemons and commands of older ones end when it stands
// in slurm.conf.
const HealthCheckRelease = "26.05"

// defaultHealthCheckTimeout is what a slurmd of HealthCheckRelease takes where HealthCheckTimeout is not set or is 0, in seconds.
const defaultHealthCheckTimeout = 60

// CheckHealthCheck reports a HealthCheckTimeout that is not less than HealthCheckInterval. slurmctld and slurmd of HealthCheckRelease
// start all the same, and log an error whenever they read slurm.conf.
func (d *Document) CheckHealthCheck() []Problem {
	interval, timeout := d.seconds("HealthCheckInterval"), d.seconds("HealthCheckTimeout")
	if timeout == 0 {
		timeout = defaultHealthCheckTimeout
	}
	if interval == 0 || timeout < interval {
		return nil
	}
	instead := "make HealthCheckInterval at least 2, because no timeout can be less than 1"
	if interval > 1 {
		instead = fmt.Sprintf("set HealthCheckTimeout=%d if no image of the cluster has an older release, which does not start with that key", interval-1)
	}
	return []Problem{{Key: "HealthCheckInterval=" + strconv.Itoa(interval), Message: fmt.Sprintf("slurmctld and slurmd of release %s log an error, "+
		"because HealthCheckTimeout (%d seconds) is not less than HealthCheckInterval; %s", HealthCheckRelease, timeout, instead)}}
}

// seconds is the value of a key as a number of seconds; 0 without one. CheckValues reports what is no number.
func (d *Document) seconds(key string) int {
	value, _ := d.Get(key)
	seconds, err := strconv.Atoi(value)
	if err != nil {
		return 0
	}
	return max(0, seconds)
}
