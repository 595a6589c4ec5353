// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-hpc/coxswain/test/realslurm"
)

func TestWordsOfANewerReleasePass(t *testing.T) {
	const text = `DebugFlags=Gres,Future
PrologFlags=Future
PartitionName=p Nodes=ALL SelectTypeParameters=Future
NodeName=n State=ASLEEP
`
	unknown := []string{
		`line 1: DebugFlags: "Future" is not possible; it is none of the words that Slurm knows`,
		`line 2: PrologFlags: "Future" is not possible; it can be Alloc, Contain, DeferBatch, ForceRequeueOnFail, NoHold, RunInJob, Serial, X11`,
		`line 3: PartitionName=p SelectTypeParameters: "Future" is not possible; it can be CR_Core, CR_Core_Memory, CR_Socket, CR_Socket_Memory`,
		`line 4: NodeName=n State: "ASLEEP" is not possible; it can be ALLOCATED, CLOUD, DOWN, DRAIN, DRAINED, DRAINING, EXTERNAL, FAIL, FAILING, FUTURE, IDLE, MIXED, UNKNOWN`,
	}
	for _, tt := range []struct {
		name, release string
		want          []string
	}{
		{"all words of a release that was tried are known", "24.11.5", unknown},
		{"all words of the newest release are known", "26.05.5", unknown},
		{"a newer release may know the words", "26.11.0", nil},
		{"a release that is not known may know the words", "", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, p := range parsed(t, Slurm, text).CheckValues(tt.release) {
				got = append(got, p.Error())
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestSlurmctldKnowsTheSameWords has the slurmctlds of both releases read all words that are known here, and one that is not. Each word has to
// be one of a release.
func TestSlurmctldKnowsTheSameWords(t *testing.T) {
	lists := map[string]string{
		"DebugFlags": debugFlags, "PrologFlags": prologFlags, "SelectTypeParameters": selectParameters, "TaskPluginParam": taskParameters,
	}
	known := map[string]bool{}
	roots := realslurm.Roots(t)
	for _, root := range roots {
		box := realslurm.Open(t, root, "")
		reads := func(key, word string) bool {
			d := minimal()
			d.Add("ProctrackType", "proctrack/cgroup") // of X11
			d.Add("TaskPlugin", "task/cgroup")         // of OOMKillStep
			d.Add("AuthType", "auth/slurm")
			// Where the whole file has been read, slurmctld ends because it has no key.
			return strings.Contains(tried(t, box, mustWrite(t, d)+key+"="+word+"\n"), "cannot stat")
		}
		for key, list := range lists {
			for word := range strings.FieldsSeq(list) {
				known[key+"="+word] = known[key+"="+word] || reads(key, word)
			}
			if reads(key, "Fooo") {
				t.Errorf("Slurm %s takes %s=Fooo", root.Release, key)
			}
		}
	}
	for word, yes := range known {
		if !yes {
			t.Errorf("%s is known here, and to no slurmctld of %d", word, len(roots))
		}
	}
}
