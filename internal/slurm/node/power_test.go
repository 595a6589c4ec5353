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
		"a node in service":                             {"IDLE+CLOUD", true, "CLOUD"},
		"one with jobs":                                 {"MIXED+COMPLETING+CLOUD", true, "CLOUD"},
		"one that is not CLOUD and in service":          {"ALLOCATED", true, ""},
		"one that is DOWN is not powered down":          {"DOWN+CLOUD", true, "DOWN+CLOUD"},
		"one that is powered down":                      {"IDLE+CLOUD+POWERED_DOWN", false, "CLOUD+POWERED_DOWN"},
		"one that powers down":                          {"IDLE+CLOUD+POWERING_DOWN", false, "CLOUD+POWERING_DOWN"},
		"one that a job waits for":                      {"ALLOCATED+CLOUD+NOT_RESPONDING+POWERING_UP", true, "CLOUD+NOT_RESPONDING+POWERING_UP"},
		"one for which a power up has been asked":       {"IDLE+CLOUD+POWERED_DOWN+POWER_UP", true, "CLOUD+POWERED_DOWN+POWER_UP"},
		"a busy one for which a power down is asked":    {"MIXED+CLOUD+POWER_DOWN", false, "CLOUD+POWER_DOWN"},
		"one that is to power down while it powers up":  {"IDLE+CLOUD+POWERING_UP+POWER_DOWN", false, "CLOUD+POWERING_UP+POWER_DOWN"},
		"one whose jobs are to be ended for power down": {"MIXED+POWER_DOWN_FORCE", false, "POWER_DOWN_FORCE"},
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
