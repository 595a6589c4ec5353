// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"strings"
	"testing"
)

func TestWhetherSlurmWantsAMachineToRun(t *testing.T) {
	for name, c := range map[string]struct {
		state  string
		wanted bool
		power  string
	}{
		"a node in service is wanted":                                    {"IDLE+CLOUD", true, "CLOUD"},
		"a node with jobs is wanted":                                     {"MIXED+COMPLETING+CLOUD", true, "CLOUD"},
		"a node that is not CLOUD and in service is wanted":              {"ALLOCATED", true, ""},
		"a node that is DOWN is not powered down":                        {"DOWN+CLOUD", true, "DOWN+CLOUD"},
		"a node that is powered down is not wanted":                      {"IDLE+CLOUD+POWERED_DOWN", false, "CLOUD+POWERED_DOWN"},
		"a node that powers down is not wanted":                          {"IDLE+CLOUD+POWERING_DOWN", false, "CLOUD+POWERING_DOWN"},
		"a node that a job waits for is wanted":                          {"ALLOCATED+CLOUD+NOT_RESPONDING+POWERING_UP", true, "CLOUD+NOT_RESPONDING+POWERING_UP"},
		"a node for which a power up has been asked is wanted":           {"IDLE+CLOUD+POWERED_DOWN+POWER_UP", true, "CLOUD+POWERED_DOWN+POWER_UP"},
		"a busy node for which a power down is asked is not wanted":      {"MIXED+CLOUD+POWER_DOWN", false, "CLOUD+POWER_DOWN"},
		"a node that is to power down while it powers up is not wanted":  {"IDLE+CLOUD+POWERING_UP+POWER_DOWN", false, "CLOUD+POWERING_UP+POWER_DOWN"},
		"a node whose jobs are to be ended for power down is not wanted": {"MIXED+POWER_DOWN_FORCE", false, "POWER_DOWN_FORCE"},
	} {
		t.Run(name, func(t *testing.T) {
			state := Parse(strings.Split(c.state, "+"))
			if got := state.Wanted(); got != c.wanted {
				t.Errorf("%s is wanted: %t", c.state, got)
			}
			if got, want := Parse(strings.Split(state.Power(), "+")), Parse(strings.Split(c.power, "+")); !got.Equal(want) {
				t.Errorf("%s has power %s, want %s", c.state, got, want)
			}
		})
	}
}
