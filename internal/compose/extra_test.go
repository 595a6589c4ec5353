// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestVariablesOfSlurmNodeExtra: the kubelet, which expands only $(NAME) and $$, puts them in. No shell does.
func TestVariablesOfSlurmNodeExtra(t *testing.T) {
	for name, test := range map[string]struct{ text, want, env, note string }{
		"plain text":                             {text: `{"a": 1}`, want: `{"a": 1}`},
		"variables of the contract":              {text: `${INSTANCE_ID}/$K8S_POD_NAME`, want: "$(INSTANCE_ID)/$(K8S_POD_NAME)", env: "INSTANCE_ID K8S_POD_NAME"},
		"a variable may be there twice":          {text: "$INSTANCE_ID$INSTANCE_ID", want: "$(INSTANCE_ID)$(INSTANCE_ID)", env: "INSTANCE_ID"},
		"a variable may be one of the user's":    {text: "rack=$RACK", want: "rack=$(RACK)"},
		"the memory":                             {text: "$SLURM_REAL_MEMORY", want: "$(SLURM_REAL_MEMORY)", env: "SLURM_REAL_MEMORY"},
		"a variable that nobody has is left out": {text: "a$NOBODY b", want: "a b", note: "the container has no such variable: NOBODY"},
		"a command of a shell":                   {text: "$(reboot) `reboot`", want: "$$(reboot) `reboot`"},
		"a variable of the kubelet":              {text: "$(INSTANCE_ID)", want: "$$(INSTANCE_ID)"},
		"dollar signs at odd places":             {text: "$ $$ 5$ ${} ${A", want: "$$ $$$$ 5$$ $${} $${A"},
		"a default value of the shell":           {text: "${A:-b}", want: "$${A:-b}"},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := json.Marshal(test.text)
			if err != nil {
				t.Fatal(err)
			}
			out := Cluster(load(t).cluster(t, `{slurmNodes: {worker: {size: 1, slurmNodeExtra: `+string(text)+
				`, slurmd: {customEnv: [{name: RACK, value: r1}], resources: {cpu: "1", memory: 2Gi}}}}}`))
			if len(out.Problems) > 0 {
				t.Fatal(out.Problems.Message())
			}
			var slurmd corev1.Container
			if err := json.Unmarshal(out.Components.NodeSets[0].Spec.Slurmd.Raw, &slurmd); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(slurmd.Args, []string{"--extra", test.want}) {
				t.Errorf("arguments are %q, want %q", slurmd.Args, test.want)
			}
			var env []string
			for _, e := range slurmd.Env {
				if !slices.Contains([]string{"SLURM_CLUSTER_TYPE", "RACK", realMemoryVariable}, e.Name) {
					env = append(env, e.Name)
				}
			}
			if got := strings.Join(env, " "); got != test.env {
				t.Errorf("variables are %q, want %q", got, test.env)
			}
			if told := strings.Contains(strings.Join(out.Notes, "\n"), "slurmNodeExtra"); told != (test.note != "") || !strings.Contains(strings.Join(out.Notes, "\n"), test.note) {
				t.Errorf("notes are %q, want %q", out.Notes, test.note)
			}
		})
	}
}
