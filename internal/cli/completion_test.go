// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestNamesAreCompleted(t *testing.T) {
	w := newWorld(t, slices.Concat(demo(), lone(), workers(), []client.Object{
		daemonPod("demo-controller-0", "slurmctld", "demo"), daemonPod("demo-login-0", "login", "demo-login"),
	})...)
	for name, tc := range map[string]struct{ args, want string }{
		"clusters":                     {"status ", "demo lone"},
		"a cluster has one name":       {"status demo ", ""},
		"NodeSets":                     {"plan ", "demo-worker"},
		"Slurm nodes":                  {"explain node ", "worker-3 worker-4 worker-5 worker-6 worker-7 worker-8"},
		"worker pods":                  {"explain pod ", "demo-worker-3 demo-worker-4 demo-worker-5 demo-worker-6 demo-worker-7 demo-worker-8 demo-worker-9"},
		"Slurm nodes, each once":       {"cordon worker-3 worker-4 worker-5 ", "worker-6 worker-7 worker-8"},
		"components":                   {"logs ", "login slurmctld slurmdbd slurmrestd worker"},
		"objects of a component":       {"logs slurmctld ", "demo"},
		"workers of a component":       {"logs worker ", "worker-3 worker-4 worker-5 worker-6 worker-7 worker-8"},
		"LoginSets":                    {"--login ", "demo-login"},
		"Controllers":                  {"token alice --controller ", "demo lone"},
		"no users":                     {"token ", ""},
		"what top shows":               {"top ", "nodes partitions"},
		"nodes with jobs":              {"jobs --node ", "worker-3 worker-4 worker-5 worker-6 worker-7 worker-8"},
		"output formats":               {"status -o ", "json yaml wide"},
		"nothing in another namespace": {"-n other plan ", ""},
	} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"__complete", "--kubeconfig=" + w.kubeconfig}, strings.Split(tc.args, " ")...)
			got := run(t.Context(), t, program(), args...).check(t, 0)
			lines := strings.Split(strings.TrimSpace(got.out), "\n")
			if offered := strings.Join(lines[:len(lines)-1], " "); offered != tc.want || lines[len(lines)-1] != ":4" {
				t.Errorf("it offers %q, want %q, and ends with %q", offered, tc.want, lines[len(lines)-1])
			}
		})
	}
	w.forbidden = "nodesets"
	if got := w.run(t, "plan", "x").check(t, 1); got.out != "" {
		t.Errorf("it printed %q", got.out)
	}
	got := run(t.Context(), t, program(), "__complete", "--kubeconfig="+w.kubeconfig, "plan", "").check(t, 0)
	if strings.TrimSpace(got.out) != ":4" {
		t.Errorf("without the right to NodeSets it offers %q", got.out)
	}
}

func TestShellsAreCompleted(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if got := run(t.Context(), t, program(), "completion", shell).check(t, 0); !strings.Contains(got.out, "kubectl-slurm") {
			t.Errorf("the script for %s does not name the program: %.200q", shell, got.out)
		}
	}
}
