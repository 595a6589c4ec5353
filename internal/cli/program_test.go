// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"testing"

	"github.com/coxswain-hpc/coxswain/internal/testing/golden"
)

func TestProgram(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		code int
	}{
		"help":                   {[]string{"--help"}, 0},
		"version":                {[]string{"--version"}, 0},
		"an_unknown_command":     {[]string{"reboot"}, 1},
		"an_unknown_flag":        {[]string{"status", "--colour"}, 1},
		"an_unknown_explanation": {[]string{"explain", "partition"}, 1},
		"no_explanation":         {[]string{"explain"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			golden.Check(t, "program/"+name+".txt", run(t.Context(), t, program(), tc.args...).check(t, tc.code).golden(tc.args...))
		})
	}
}
