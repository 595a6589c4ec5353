// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package passivecheck

import (
	"strings"
	"testing"
)

func h100(n int) *Platform {
	p := &Platform{}
	for range n {
		p.Models = append(p.Models, "NVIDIA H100 80GB HBM3")
	}
	return p
}

func TestSelection(t *testing.T) {
	one, eight := &Job{ID: 1, GPUs: []int{0}}, &Job{ID: 1, GPUs: []int{0, 1, 2, 3, 4, 5, 6, 7}}
	drained, idle := &Node{States: []string{"IDLE", "DRAIN"}}, &Node{States: []string{"IDLE"}}
	for _, test := range []struct {
		name, check string
		facts       Facts
		run         bool
		need        Need
		why         string
	}{
		{"a check without words runs, and needs nothing", `{}`, Facts{Context: Prolog, Job: one}, true, NeedNothing, ""},
		{"another context", `{"contexts": ["epilog"]}`, Facts{Context: Prolog, Job: one}, false, NeedNothing, "other contexts"},
		{"the second context", `{"contexts": ["epilog", "prolog"]}`, Facts{Context: Prolog, Job: one}, true, NeedNothing, ""},
		{"no context, whatever else there is", `{"contexts": ["any", "none"]}`, Facts{Context: Prolog, Job: one}, false, NeedNothing, "other contexts"},
		{"a CPU job", `{"skip_for_cpu_jobs": true}`, Facts{Context: Prolog, Job: &Job{ID: 1}}, false, NeedNothing, "no GPUs"},
		{"no job is no CPU job", `{"skip_for_cpu_jobs": true}`, Facts{Context: HealthProgram}, true, NeedNothing, ""},
		{"a CPU job needs no platform", `{"skip_for_cpu_jobs": true, "platforms": ["8xGPU"]}`, Facts{Context: Prolog, Job: &Job{ID: 1}}, false, NeedNothing, "no GPUs"},
		{"a platform is asked for", `{"platforms": ["8xGPU"]}`, Facts{Context: Prolog, Job: one}, false, NeedPlatform, "not known"},
		{"a check for any platform asks for no platform", `{"platforms": ["8xGPU", "any"]}`, Facts{Context: Prolog, Job: one}, true, NeedNothing, ""},
		{"the platform by its number", `{"platforms": ["8xGPU"]}`, Facts{Context: Prolog, Job: one, Platform: h100(8)}, true, NeedNothing, ""},
		{"the platform by its model", `{"platforms": ["8xH100"]}`, Facts{Context: Prolog, Job: one, Platform: h100(8)}, true, NeedNothing, ""},
		{"another model", `{"platforms": ["8xH200"]}`, Facts{Context: Prolog, Job: one, Platform: h100(8)}, false, NeedNothing, "8xH100"},
		{"a node without GPUs", `{"platforms": ["CPU"]}`, Facts{Context: Prolog, Job: one, Platform: h100(0)}, true, NeedNothing, ""},
		{"a part of the GPUs", `{"skip_for_partial_gpu_jobs": true}`, Facts{Context: Epilog, Job: one, Platform: h100(8)}, false, NeedNothing, "all GPUs"},
		{"all GPUs", `{"skip_for_partial_gpu_jobs": true}`, Facts{Context: Epilog, Job: eight, Platform: h100(8)}, true, NeedNothing, ""},
		{"how many there are is asked for", `{"skip_for_partial_gpu_jobs": true}`, Facts{Context: Epilog, Job: one}, false, NeedPlatform, "not known"},
		{"the state is asked for last", `{"node_states": ["drain"], "platforms": ["CPU"]}`, Facts{Context: HealthProgram}, false, NeedPlatform, "platform"},
		{"the state is asked for", `{"node_states": ["drain"]}`, Facts{Context: HealthProgram}, false, NeedNode, "not known"},
		{"a drained node", `{"node_states": ["drain"]}`, Facts{Context: HealthProgram, Node: drained}, true, NeedNothing, ""},
		{"a node that is not drained", `{"node_states": ["drain"]}`, Facts{Context: HealthProgram, Node: idle}, false, NeedNothing, "not drained"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := parsed(t, test.check).Select(test.facts)
			if got.Run != test.run || got.Need != test.need || !strings.Contains(got.Why, test.why) {
				t.Errorf("%+v", got)
			}
		})
	}
}

// parsed reads one check.
func parsed(t *testing.T, text string) Check {
	t.Helper()
	checks, err := Parse([]byte(text), someBuiltins)
	if err != nil || len(checks) != 1 {
		t.Fatalf("%v, %v", checks, err)
	}
	return checks[0]
}

func TestHostChecksComeFirst(t *testing.T) {
	checks, err := Parse([]byte(`[{"name": "a", "run_in_jail": true}, {"name": "b"}, {"name": "c", "run_in_jail": true}, {"name": "d"}]`), someBuiltins)
	if err != nil {
		t.Fatal(err)
	}
	names := ""
	for _, c := range Order(checks) {
		names += c.Name
	}
	if names != "bdac" {
		t.Errorf("they run as %s", names)
	}
}

func TestPlatforms(t *testing.T) {
	for _, test := range []struct {
		name, tags string
		models     []string
	}{
		{"no GPU", "any,CPU", nil},
		{"a model without a platform", "any,2xGPU", []string{"NVIDIA A100-SXM4-80GB", "NVIDIA A100-SXM4-80GB"}},
		{"H200", "any,1xGPU,1xH200", []string{"NVIDIA H200"}},
		{"GB300 is not B300", "any,1xGPU,1xGB300", []string{"NVIDIA GB300"}},
		{"GB200 is not B200", "any,1xGPU", []string{"NVIDIA GB200"}},
		{"a hyphen ends a word", "any,1xGPU,1xH100", []string{"NVIDIA H100-PCIe"}},
		{"two models are none", "any,2xGPU", []string{"NVIDIA H100", "NVIDIA H200"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := Platform{Models: test.models}
			if got := strings.Join(p.Tags(), ","); got != test.tags || !strings.HasSuffix(got, p.Tag()) {
				t.Errorf("%s, %s; want %s", got, p.Tag(), test.tags)
			}
		})
	}
}
