// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package activecheckplan

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	"github.com/coxswain-hpc/coxswain/internal/testing/manifest"
)

func TestWhatFollowsAJobOfACheck(t *testing.T) {
	const failedGPU = "Failed gpu: job 17 [slurm_job]"
	for name, test := range map[string]struct {
		spec, state string
		want        []NodeReaction
		// problem is the path of a mistake.
		problem string
	}{
		"nothing is asked for":                                         {state: "FAILED"},
		"a drain is asked for":                                         {spec: "failureReactions: {drainSlurmNode: true}", state: "FAILED", want: []NodeReaction{{Node: "a", Drain: failedGPU}, {Node: "b", Drain: failedGPU}}},
		"a drain marks the Kubernetes node":                            {spec: "failureReactions: {drainSlurmNode: true, setCondition: true}", state: "FAILED", want: []NodeReaction{{Node: "a", Drain: nodeProblem + " " + failedGPU}, {Node: "b", Drain: nodeProblem + " " + failedGPU}}},
		"setCondition alone drains nothing":                            {spec: "failureReactions: {setCondition: true}", state: "FAILED"},
		"a drain has a prefix of its own":                              {spec: `failureReactions: {drainSlurmNode: {drainReasonPrefix: "[hardware_problem]"}, setCondition: true}`, state: "FAILED", want: []NodeReaction{{Node: "a", Drain: "[hardware_problem] " + failedGPU}, {Node: "b", Drain: "[hardware_problem] " + failedGPU}}},
		"a comment is asked for":                                       {spec: "failureReactions: {commentSlurmNode: {commentPrefix: see}}", state: "FAILED", want: []NodeReaction{{Node: "a", Comment: "see " + failedGPU}, {Node: "b", Comment: "see " + failedGPU}}},
		"a success takes the comment away":                             {spec: "failureReactions: {commentSlurmNode: true}", state: "COMPLETED", want: []NodeReaction{{Node: "a", Uncomment: true}, {Node: "b", Uncomment: true}}},
		"a success says something itself":                              {spec: "failureReactions: {commentSlurmNode: true}, successReactions: {commentSlurmNode: {}}", state: "COMPLETED", want: []NodeReaction{{Node: "a", Comment: "Completed gpu: job 17 [slurm_job]"}, {Node: "b", Comment: "Completed gpu: job 17 [slurm_job]"}}},
		"a cancelled job takes no comment away":                        {spec: "failureReactions: {commentSlurmNode: true}", state: "CANCELLED"},
		"a reservation is asked for":                                   {spec: "failureReactions: {addReservation: {prefix: suspicious}}", state: "FAILED", want: []NodeReaction{{Node: "a", AddReservation: "suspicious-a"}, {Node: "b", AddReservation: "suspicious-b"}}},
		"a reservation without a prefix is none":                       {spec: "failureReactions: {addReservation: {}}", state: "FAILED"},
		"the deprecated block counts by itself":                        {spec: "reactions: {drainSlurmNode: true}", state: "FAILED", want: []NodeReaction{{Node: "a", Drain: failedGPU}, {Node: "b", Drain: failedGPU}}},
		"the deprecated block counts for nothing beside the other":     {spec: "failureReactions: {}, reactions: {drainSlurmNode: true}", state: "FAILED"},
		"false is no drain":                                            {spec: "failureReactions: {drainSlurmNode: false}", state: "FAILED"},
		"a success ends a reservation":                                 {spec: "failureReactions: {drainSlurmNode: true}, successReactions: {removeReservation: {prefix: suspicious}}", state: "COMPLETED", want: []NodeReaction{{Node: "a", RemoveReservation: "suspicious-a"}, {Node: "b", RemoveReservation: "suspicious-b"}}},
		"a failure does not count as a success":                        {spec: "successReactions: {removeReservation: {prefix: suspicious}}", state: "FAILED"},
		"a job whose node died says nothing":                           {spec: "failureReactions: {drainSlurmNode: true}, successReactions: {removeReservation: {prefix: s}}", state: "NODE_FAIL"},
		"a cancelled job says nothing":                                 {spec: "failureReactions: {drainSlurmNode: true}", state: "CANCELLED"},
		"a drain that is neither true, false nor a block is a mistake": {spec: "failureReactions: {drainSlurmNode: 7}", state: "FAILED", problem: "spec.failureReactions.drainSlurmNode"},
		"a comment with a line break is a mistake":                     {spec: `reactions: {commentSlurmNode: {commentPrefix: "a\nb"}}`, state: "FAILED", problem: "spec.reactions.commentSlurmNode"},
		"a mistake does not keep the rest from being done":             {spec: "failureReactions: {drainSlurmNode: 7, addReservation: {prefix: s}}", state: "FAILED", problem: "spec.failureReactions.drainSlurmNode", want: []NodeReaction{{Node: "a", AddReservation: "s-a"}, {Node: "b", AddReservation: "s-b"}}},
	} {
		t.Run(name, func(t *testing.T) {
			check := manifest.Parse[nebiusv1alpha1.ActiveCheck](t, "{metadata: {name: gpu}, spec: {slurmClusterRefName: demo, "+test.spec+"}}")
			got, problems := ReactTo(check, CheckedJob{ID: "17", State: test.state, Nodes: []string{"b", "a", "b"}})
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if len(problems) > 1 || (len(problems) == 1) != (test.problem != "") || len(problems) == 1 && problems[0].Path != test.problem {
				t.Errorf("problems %v", problems)
			}
		})
	}
}

// FuzzReactTo: whatever a spec has, the text about a node is one line.
func FuzzReactTo(f *testing.F) {
	f.Add([]byte(`{"failureReactions": {"drainSlurmNode": {"drainReasonPrefix": "a\nb"}, "commentSlurmNode": true}}`), "a")
	f.Fuzz(func(t *testing.T, spec []byte, node string) {
		check := &nebiusv1alpha1.ActiveCheck{}
		if json.Unmarshal(spec, &check.Spec) != nil {
			return
		}
		reactions, _ := ReactTo(check, CheckedJob{ID: "1", State: "FAILED", Nodes: []string{node}})
		for _, r := range reactions {
			if strings.ContainsAny(r.Drain+r.Comment, "\r\n\x00") || r.Node != node {
				t.Errorf("%+v", r)
			}
		}
	})
}

func TestACommentIsOfTheCheckThatItNames(t *testing.T) {
	for _, test := range []struct {
		check, comment string
		want           bool
	}{
		{"gpu", "see Failed gpu: job 17 [slurm_job]", true},
		{"gpu", "Failed gpu-fryer: job 17 [slurm_job]", false},
		{"gpu", "Completed gpu: job 17 [slurm_job]", false},
		{"gpu", "", false},
	} {
		if got := CommentsOn(test.check, test.comment); got != test.want {
			t.Errorf("%q is of %s: %v", test.comment, test.check, got)
		}
	}
}
