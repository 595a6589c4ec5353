// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"strings"
	"testing"
)

func TestUsersOfLoginPodsAreIsolated(t *testing.T) {
	d := load(t)
	for name, c := range map[string]struct{ spec, memory, volume, want, problem, ignored string }{
		"users have shares of the container's memory":   {spec: "enabled: true", memory: "1000Mi", want: "memory.high=838860800 memory.max=943718400 cpu.weight=100"},
		"users have what is given":                      {spec: "enabled: true, memoryHigh: 1M, memoryMax: 2M, cpuWeight: 7", want: "memory.high=1000000 memory.max=2000000 cpu.weight=7"},
		"users have what is given and what follows":     {spec: "enabled: true, memoryHigh: 100", memory: "1000", want: "memory.high=100 memory.max=900 cpu.weight=100"},
		"users are not isolated unless that is enabled": {spec: "cpuWeight: 7", memory: "1000Mi"},
		"isolation without any memory is refused":       {spec: "enabled: true", problem: "memoryHigh and memoryMax must be given and positive, or follow from spec.slurmNodes.login.sshd.resources.memory"},
		"memoryHigh beyond what follows is refused":     {spec: "enabled: true, memoryHigh: 950", memory: "1000", problem: "is 950 bytes and exceeds memoryMax, 900 bytes"},
		"isolation without a jail is ignored":           {spec: "enabled: true", memory: "1000Mi", volume: "data", ignored: "spec.slurmNodes.login.userIsolation (without a jail)"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.volume == "" {
				c.volume = "jail"
			}
			resources := ""
			if c.memory != "" {
				resources = "sshd: {resources: {memory: " + c.memory + "}}, "
			}
			in := d.input(t, "kind: SlurmCluster\nmetadata: {name: demo}\nspec: {volumeSources: [{name: "+c.volume+", nfs: {server: s, path: /}}], "+
				"slurmNodes: {login: {"+resources+"size: 1, userIsolation: {"+c.spec+"}}}}\n")
			jailIsFilled(in.Cluster)
			out := Cluster(in)
			login, err := out.Components.LoginSet.Spec.Login.Decode()
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if login != nil {
				got = valueOf(login.Env, isolationVariable)
			}
			if got != c.want {
				t.Errorf("login pods are told %q, want %q", got, c.want)
			}
			if message := out.Problems.Message(); (message != "") != (c.problem != "") || !strings.Contains(message, c.problem) {
				t.Errorf("problems are %q, want %q", message, c.problem)
			}
			if ignored := strings.Join(out.Ignored, ", "); ignored != c.ignored {
				t.Errorf("without effect is %q, want %q", ignored, c.ignored)
			}
			if told := strings.Contains(strings.Join(out.Notes, " "), "cgroup v2"); told != (c.want != "") {
				t.Errorf("notes are %q", out.Notes)
			}
		})
	}
}
