// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package passivecheck

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// shown is what scontrol of 26.05 shows of a node.
const shown = `NodeName=worker-0 Arch=x86_64 CoresPerSocket=1 
   CPUAlloc=1 CPUEfctv=2 CPUTot=2 CPULoad=0.10
   AvailableFeatures=worker
   ActiveFeatures=worker
   Gres=(null)
   NodeAddr=10.0.0.1 NodeHostName=worker-0 Version=26.05.5
   OS=Linux 6.1.0 
   RealMemory=7941 AllocMem=100 FreeMem=5031 Sockets=2 Boards=1
   CoreSpecCount=1 CPUSpecList=1 MemSpecLimit=6917
   State=MIXED+DRAIN+DYNAMIC_NORM ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A
   Partitions=main 
   BootTime=2026-11-24T20:36:00 SlurmdStartTime=2026-11-25T00:00:00
   CfgTRES=cpu=1,mem=7941M,billing=1
   AllocTRES=cpu=1,mem=100M
   Comment=State=IDLE RealMemory=1
   Reason=[node_problem] disk: full [prolog] [root@2026-11-25T00:01:02]
`

func TestANodeIsRead(t *testing.T) {
	for _, test := range []struct {
		name, text string
		want       Node
		fails      bool
	}{
		{"a drained node with a job", shown, Node{States: []string{"MIXED", "DRAIN", "DYNAMIC_NORM"}, Reason: "[node_problem] disk: full [prolog]",
			Comment: "State=IDLE RealMemory=1", Address: "10.0.0.1", RealMemory: 7941, AllocMemory: 100, SpecMemory: 6917}, false},
		{"a node that does not respond", "NodeName=x\n   RealMemory=1 AllocMem=0\n   State=IDLE* X=1\n", Node{States: []string{"IDLE"}, RealMemory: 1}, false},
		{"a reason without a user", "   State=DOWN\n   Reason=x [y]\n", Node{States: []string{"DOWN"}, Reason: "x [y]"}, false},
		{"an error in the place of a node", "Node worker-0 not found\n", Node{}, true},
		{"nothing", "", Node{}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := ParseNode(test.text)
			if (err != nil) != test.fails {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzParseNode(f *testing.F) {
	f.Add(shown)
	f.Add("State=\nReason= [a@1]")
	f.Fuzz(func(t *testing.T, text string) {
		n, err := ParseNode(text)
		if err == nil && (len(n.States) == 0 || n.States[0] == "") {
			t.Errorf("%q: a node without a state", text)
		}
		if n.RealMemory < 0 || n.AllocMemory < 0 || n.SpecMemory < 0 {
			t.Errorf("%q: %+v", text, n)
		}
		_, _ = ParseJobMemory(text, "worker-0")
	})
}

func TestTheMemoryOfAJob(t *testing.T) {
	const text = "JobId=3 JobName=x\n   NumNodes=3\n     Nodes=worker-0 CPU_IDs=0-1 Mem=200 GRES=\n     Nodes=worker-[1-2] CPU_IDs=0 Mem=100 GRES=\n   Command=x\n"
	for node, want := range map[string]int64{"worker-0": 200, "worker-2": 100} {
		if got, err := ParseJobMemory(text, node); err != nil || got != want {
			t.Errorf("%s: %d, %v", node, got, err)
		}
	}
	if _, err := ParseJobMemory(text, "worker-3"); err == nil {
		t.Error("a node without the job has memory of it")
	}
}

func TestTheNameOfAJobForgesNoMemory(t *testing.T) {
	const real = "   NumNodes=1\n     Nodes=worker-0 CPU_IDs=0-1 Mem=200 GRES=\n   Command=x"
	for name, test := range map[string]struct {
		text string
		want int64
	}{
		"a name that looks like a field":                       {"JobId=3 JobName=x Nodes=worker-0 Mem=9000\n" + real, 200},
		"a name with a line break":                             {"JobId=3 JobName=x\n     Nodes=worker-0 CPU_IDs=0-1 Mem=9000 GRES=\n" + real, 0},
		"a command with a line break":                          {"JobId=3 JobName=x\n" + real + "\n     Nodes=worker-[0-9] CPU_IDs=0-1 Mem=9000 GRES=\n", 0},
		"a name that forges what is true":                      {"JobId=3 JobName=x\n     Nodes=worker-0 CPU_IDs=0-1 Mem=200 GRES=\n" + real, 200},
		"two tasks of an array with the same memory on a node": {"JobId=3 JobName=x\n" + real + "\n\nJobId=4 JobName=x\n" + real, 200},
	} {
		got, err := ParseJobMemory(test.text, "worker-0")
		if got != test.want || (err == nil) != (test.want != 0) {
			t.Errorf("%s: %d, %v; want %d", name, got, err, test.want)
		}
	}
}

func TestTheJobOfAnEnvironment(t *testing.T) {
	for _, test := range []struct {
		name, environment string
		want              *Job
		fails             string
	}{
		{"the environment has no job", "SLURMD_NODENAME=x", nil, ""},
		{"a CPU job", "SLURM_JOB_ID=7 SLURM_JOB_UID=1000 SLURM_JOB_GID=100", &Job{ID: 7, UID: 1000, GID: 100}, ""},
		{"a job with GPUs", "SLURM_JOB_ID=7 SLURM_JOB_GPUS=0,2-4", &Job{ID: 7, GPUs: []int{0, 2, 3, 4}}, ""},
		{"a job that wants no checks", "SLURM_JOB_ID=7 SLURM_JOB_COMMENT=skip_checks", &Job{ID: 7, Comment: "skip_checks"}, ""},
		{"the id of the job is no number", "SLURM_JOB_ID=../7", nil, "SLURM_JOB_ID"},
		{"the user of the job is negative", "SLURM_JOB_ID=7 SLURM_JOB_UID=-1", nil, "SLURM_JOB_UID"},
		{"the GPUs of the job have names", "SLURM_JOB_ID=7 SLURM_JOB_GPUS=GPU-1", nil, "SLURM_JOB_GPUS"},
		{"the job has too many GPUs", "SLURM_JOB_ID=7 SLURM_JOB_GPUS=0-65535", nil, "SLURM_JOB_GPUS"},
	} {
		t.Run(test.name, func(t *testing.T) {
			environment := map[string]string{}
			for entry := range strings.FieldsSeq(test.environment) {
				name, value, _ := strings.Cut(entry, "=")
				environment[name] = value
			}
			got, err := JobOf(environment)
			if (err != nil) != (test.fails != "") || err != nil && !strings.Contains(err.Error(), test.fails) {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestOnlyTheExactCommentSkips(t *testing.T) {
	for comment, want := range map[string]bool{
		"skip_checks": true, "skip_checks ": false, "please skip_checks": false, "": false,
		"coxswain.dev/activecheck u comment=skip_checks": true, "coxswain.dev/activecheck u w-1 comment=skip_checks": true,
		"coxswain.dev/activecheck u w-1": false, "coxswain.dev/activecheck skip_checks": false, "coxswain.dev/activecheck u skip_checks": false,
		"coxswain.dev/activecheck u w-1 comment=a comment=skip_checks": false, "mine comment=skip_checks": false,
	} {
		if got := (&Job{Comment: comment}).Skips(); got != want {
			t.Errorf("%q: %v", comment, got)
		}
	}
	if (*Job)(nil).Skips() {
		t.Error("no job asks for no checks")
	}
}

func FuzzIndices(f *testing.F) {
	for _, text := range []string{"0", "0,1", "3-5", "5-3", ",", "-", "65535-0"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := indices(text)
		if len(got) > maxGPUs || err != nil && got != nil {
			t.Errorf("%q: %d, %v", text, len(got), err)
		}
	})
}

func TestCountersAreReadAsTheyAreWritten(t *testing.T) {
	counters := Counters{{Context: Prolog, Check: "a \"quoted\" \\ name"}: 3, {Context: HealthProgram}: 1, {Context: Prolog, Check: "b"}: 2}
	const want = `# HELP coxswain_check_runner_internal_errors_total Errors of check-runner itself, which let jobs run.
# TYPE coxswain_check_runner_internal_errors_total counter
coxswain_check_runner_internal_errors_total{context="hc_program",check=""} 1
coxswain_check_runner_internal_errors_total{context="prolog",check="a \"quoted\" \\ name"} 3
coxswain_check_runner_internal_errors_total{context="prolog",check="b"} 2
`
	if diff := cmp.Diff(want, counters.Text()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(counters, ParseCounters(want+"something else\n")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func FuzzParseCounters(f *testing.F) {
	f.Add("disk", uint64(1), "# TYPE")
	f.Add("a\"\\\n", uint64(0), metric+"{")
	f.Fuzz(func(t *testing.T, name string, count uint64, before string) {
		if strings.ToValidUTF8(name, "") != name {
			t.Skip(errors.ErrUnsupported)
		}
		key := Counter{Context: Prolog, Check: name}
		got := ParseCounters(before + "\n" + Counters{key: count}.Text())
		if got[key] != count {
			t.Errorf("%s: %v", strconv.Quote(name), got)
		}
	})
}
