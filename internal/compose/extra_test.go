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
		"variables of the contract":              {text: `${INSTANCE_ID}/$K8S_POD_NAME`, want: "$(INSTANCE_ID)/$(K8S_POD_NAME)", env: "K8S_POD_NAME"},
		"a variable may be there twice":          {text: "$K8S_POD_NAME$K8S_POD_NAME", want: "$(K8S_POD_NAME)$(K8S_POD_NAME)", env: "K8S_POD_NAME"},
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
			of := func(generation string, raw []byte, service string, notes []string, field string) {
				t.Helper()
				var slurmd corev1.Container
				if err := json.Unmarshal(raw, &slurmd); err != nil {
					t.Fatal(err)
				}
				if want := []string{"--instance-id", "$(INSTANCE_ID)", "--extra", test.want}; !slices.Equal(slurmd.Args, want) {
					t.Errorf("%s: arguments are %q, want %q", generation, slurmd.Args, want)
				}
				var env []string
				for _, e := range slurmd.Env {
					if !slices.Contains([]string{"SLURM_CLUSTER_TYPE", "RACK", realMemoryVariable, instanceVariable}, e.Name) {
						env = append(env, e.Name)
					}
					if e.Name == "K8S_SERVICE_NAME" && e.Value != service {
						t.Errorf("%s: the service is %s", generation, e.Value)
					}
				}
				if got := strings.Join(env, " "); got != test.env {
					t.Errorf("%s: variables are %q, want %q", generation, got, test.env)
				}
				all := strings.Join(notes, "\n")
				if told := strings.Contains(all, field+":"); told != (test.note != "") || !strings.Contains(all, test.note) {
					t.Errorf("%s: notes are %q, want %q", generation, notes, test.note)
				}
			}
			const slurmd = `slurmd: {customEnv: [{name: RACK, value: r1}], resources: {cpu: "1", memory: 2Gi}`
			in := load(t).cluster(t, `{slurmNodes: {worker: {size: 1, slurmNodeExtra: `+string(text)+`, `+slurmd+`}}}}`,
				`gpu {nodeConfig: {dynamic: `+string(text)+`}, `+slurmd+`}}`)
			first, second := Cluster(in), NodeSet(in.Cluster, &in.NodeSets[0])
			if problems := slices.Concat(first.Problems, second.Problems); len(problems) > 0 {
				t.Fatal(problems)
			}
			of("SlurmCluster", first.Components.NodeSets[0].Spec.Slurmd.Raw, "demo-worker-svc", first.Notes, "slurmNodes.worker.slurmNodeExtra")
			of("NodeSet", second.Object.Spec.Slurmd.Raw, "demo-nodeset-svc", second.Notes, "spec.nodeConfig.dynamic")
		})
	}
}
