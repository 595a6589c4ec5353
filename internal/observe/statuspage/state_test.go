// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package statuspage

import (
	"strings"
	"testing"

	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

func TestInWhichStateANodeIsShown(t *testing.T) {
	for _, tt := range []struct {
		name, words string
		want        state
	}{
		{"a node without jobs", "IDLE DYNAMIC_NORM", idle},
		{"some of its processors have jobs", "MIXED", mixed},
		{"a job is being cleaned up", "IDLE COMPLETING", mixed},
		{"all of its processors have jobs", "ALLOCATED", allocated},
		{"allocated and still cleaning up another job", "ALLOCATED COMPLETING", allocated},
		{"a drain waits for a job", "MIXED DRAIN", draining},
		{"a drain waits for the end of a job", "IDLE DRAIN COMPLETING", draining},
		{"a drain is complete", "IDLE DRAIN", drained},
		{"an undrain is under way", "IDLE DRAIN UNDRAIN", idle},
		{"a drain holds beside a word that is not understood", "IDLE DRAIN NEWS", drained},
		{"slurmctld has given the node up", "DOWN NOT_RESPONDING", down},
		{"down counts more than a drain", "DOWN DRAIN", down},
		{"the base state of the node is an error", "ERROR", down},
		{"the node is about to fail", "IDLE FAIL", down},
		{"slurmctld misses its answers", "IDLE NOT_RESPONDING", notResponding},
		{"slurmctld misses the answers of a node that has jobs", "ALLOCATED NOT_RESPONDING", notResponding},
		{"a reservation for maintenance has begun", "IDLE MAINTENANCE", maintenance},
		{"a job runs in a reservation for maintenance", "ALLOCATED MAINTENANCE", allocated},
		{"the drain of a node in maintenance stays visible", "IDLE DRAIN MAINTENANCE", drained},
		{"power saving has ended the node", "IDLE CLOUD POWERED_DOWN", poweredDown},
		{"power saving ends the node", "IDLE CLOUD POWERING_DOWN", poweredDown},
		{"power saving starts the node for a job", "ALLOCATED CLOUD POWERING_UP", poweredDown},
		{"the node does not exist yet", "FUTURE", poweredDown},
		{"Slurm says nothing", "", unknown},
		{"Slurm does not know", "UNKNOWN", unknown},
		{"two base states contradict one another", "IDLE DOWN IDLE", down},
		{"idle beside a word that is not understood", "IDLE NEWS", unknown},
		{"Slurm could not tell", "IDLE INVALID", unknown},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := shown(node.Parse(strings.Fields(tt.words))); got != tt.want {
				t.Errorf("%s is shown as %s, want %s", tt.words, got, tt.want)
			}
		})
	}
}

func TestEveryStateHasAWordAndAStyle(t *testing.T) {
	style, err := web.ReadFile("web/style.css")
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]bool{}
	for s := range states {
		if said[s.String()] {
			t.Errorf("two states are called %q", s)
		}
		said[s.String()] = true
		if class := ".s" + string(rune('0'+int(s))) + " {"; !strings.Contains(string(style), class) {
			t.Errorf("the stylesheet lacks %s for %s", class, s)
		}
	}
}
