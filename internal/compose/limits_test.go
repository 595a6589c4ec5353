// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLimitsOfSessions(t *testing.T) {
	d := load(t)
	const cluster = `
metadata: {name: demo}
kind: SlurmCluster
spec:
  volumeSources: [{name: VOLUME, nfs: {server: s, path: /}}]
  slurmNodes: {login: {size: 1, sshd: {securityLimitsConfig: "* soft core 0"}}, worker: {size: 1, slurmd: {securityLimitsConfig: "* - memlock unlimited\n* memlock 3"}}}
---
kind: NodeSet
metadata: {name: gpu}
spec: {slurmd: {image: {repository: r, tag: t}, security: {limitsConfig: "bob -\n\n# all\n* hard nofile 5"}}}
`
	const workers = "* - memlock unlimited\n* memlock 3"
	for name, c := range map[string]struct {
		volume, worker, nodeSet string
		ignored, ofTheirs       []string
	}{
		"login pods, and workers with a jail, have them": {volume: "jail", worker: workers, nodeSet: "bob -\n\n# all\n* hard nofile 5",
			ignored: []string{"spec.slurmNodes.worker.slurmd.securityLimitsConfig (line 2, which is none of limits.conf)"}},
		"workers without a jail have no sshd, and no sessions": {volume: "data", ignored: []string{"spec.slurmNodes.worker.slurmd.securityLimitsConfig (without a jail)"},
			ofTheirs: []string{"spec.slurmd.security.limitsConfig (without a jail)"}},
	} {
		t.Run(name, func(t *testing.T) {
			in := d.input(t, strings.ReplaceAll(cluster, "VOLUME", c.volume))
			jailIsFilled(in.Cluster)
			out, set := Cluster(in), NodeSet(in.Cluster, &in.NodeSets[0])
			login, err := out.Components.LoginSet.Spec.Login.Decode()
			if err != nil {
				t.Fatal(err)
			}
			worker, err := out.Components.NodeSets[0].Spec.Slurmd.Decode()
			if err != nil {
				t.Fatal(err)
			}
			gpu, err := set.Object.Spec.Slurmd.Decode()
			if err != nil {
				t.Fatal(err)
			}
			want := []string{"* soft core 0", c.worker, c.nodeSet}
			if diff := cmp.Diff(want, []string{valueOf(login.Env, limitsVariable), valueOf(worker.Env, limitsVariable), valueOf(gpu.Env, limitsVariable)}); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff([][]string{c.ignored, c.ofTheirs}, [][]string{out.Ignored, set.Ignored}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestLinesOfLimitsConf(t *testing.T) {
	for line, want := range map[string]bool{
		"": true, "# comment": true, "*\thard  memlock unlimited # all": true, "@lab - nofile 4096": true, "root -": true, "a soft nice -10": true, "a - chroot /x": true,
		"* memlock 3": false, "* hard memlok 3": false, "* firm memlock 3": false, "* hard memlock much": false, "* hard memlock 3 4": false, "root": false,
	} {
		if got := isLimit(line); got != want {
			t.Errorf("limits.conf has %q: %v, want %v", line, got, want)
		}
	}
}

// A text is passed on as it is, or reported.
func FuzzLimits(f *testing.F) {
	f.Add("* hard memlock unlimited\n")
	f.Add("\x00")
	f.Fuzz(func(t *testing.T, text string) {
		var found findings
		env := found.limitsConf(text, "spec.limits")
		switch {
		case len(env) == 1 && env[0].Value != text:
			t.Errorf("%q became %q", text, env[0].Value)
		case len(env) == 0 && len(found.problems) == 0 && strings.TrimSpace(text) != "":
			t.Errorf("nothing became of %q", text)
		}
	})
}
