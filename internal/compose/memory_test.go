// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestWorkersRegisterTheMemoryOfTheirContainer(t *testing.T) {
	d := load(t)
	for name, test := range map[string]struct{ set, conf, bytes, refusal string }{
		"the request is whole mebibytes":            {set: `{slurmd: {resources: {memory: 4Gi}}}`, conf: "RealMemory=4096", bytes: "4294967296"},
		"what is less than a mebibyte is left":      {set: `{slurmd: {resources: {memory: 1500M}}}`, conf: "RealMemory=1430", bytes: "1499463680"},
		"the user's RealMemory counts":              {set: `{slurmd: {resources: {memory: 4Gi}}, nodeConfig: {static: RealMemory=1000}}`, conf: "RealMemory=1000", bytes: "1048576000"},
		"a container without memory registers none": {set: `{slurmd: {resources: {cpu: "1"}}}`},
		"the variable is the operator's": {set: `{slurmd: {resources: {memory: 4Gi}, customEnv: [{name: SOPERATOR_NODE_REAL_MEMORY_BYTES, value: "1"}]}}`,
			refusal: "spec.slurmd.customEnv: must not have SOPERATOR_NODE_REAL_MEMORY_BYTES"},
	} {
		t.Run(name, func(t *testing.T) {
			out := Cluster(d.cluster(t, "{}", "a "+test.set))
			if test.refusal != "" {
				if len(out.Held) != 1 || !strings.Contains(out.Held[0].Problems.Message(), test.refusal) {
					t.Errorf("%+v, want %s", out.Held, test.refusal)
				}
				return
			}
			if len(out.Problems)+len(out.Held) > 0 {
				t.Fatalf("%s %v", out.Problems.Message(), out.Held)
			}
			set := out.Components.NodeSets[len(out.Components.NodeSets)-1]
			var found []string
			for option := range strings.FieldsSeq(set.Spec.ExtraConf) {
				if strings.HasPrefix(option, "RealMemory=") {
					found = append(found, option)
				}
			}
			if got := strings.Join(found, " "); got != test.conf {
				t.Errorf("the node registers with %q, want %q", got, test.conf)
			}
			slurmd, err := set.Spec.Slurmd.Decode()
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(slurmd.Env, func(e corev1.EnvVar) bool { return e.Name == realMemoryVariable })
			bytes := ""
			if i >= 0 {
				bytes = slurmd.Env[i].Value
			}
			if bytes != test.bytes {
				t.Errorf("%s is %q, want %q", realMemoryVariable, bytes, test.bytes)
			}
		})
	}
}
