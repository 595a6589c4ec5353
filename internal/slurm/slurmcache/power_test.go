// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcache

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

func TestPowerOnRequest(t *testing.T) {
	for name, test := range map[string]struct {
		// before is the reason that somebody has given the node.
		before string
		ask    func(l *Cache, ctx context.Context, nodes []string) Failures
		held   bool
		want   string
	}{
		"a node powers down":                     {"", (*Cache).PowerDown, false, "IDLE+POWERED_DOWN"},
		"a node that somebody has drained stays": {"DRAIN", (*Cache).PowerDown, true, "IDLE+DRAIN"},
		"a node that somebody set DOWN stays":    {"DOWN", (*Cache).PowerDown, true, "DOWN"},
		"a node that is up stays up":             {"", (*Cache).PowerUp, false, "IDLE"},
		"a node that powers up keeps its drain":  {"POWER_DOWN DRAIN", (*Cache).PowerUp, false, "IDLE+DRAIN+NOT_RESPONDING+POWERING_UP"},
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, 1, func(t *testing.T, s *fake.Slurm, l *Cache) {
				for state := range strings.FieldsSeq(test.before) {
					if err := s.Update("root", "worker-0", state, "bad disk"); err != nil {
						t.Fatal(err)
					}
				}
				after(time.Minute)
				err := test.ask(l, t.Context(), []string{"worker-0"}).Err()
				if held := errors.Is(err, ErrHeld); held != test.held || !held && err != nil {
					t.Errorf("the request ended with %v", err)
				}
				n, _ := s.Node("worker-0")
				if got := strings.TrimSuffix(strings.Join(n.State, "+"), "+DYNAMIC_NORM"); got != test.want {
					t.Errorf("the node is %s, want %s", got, test.want)
				}
			})
		})
	}
}
