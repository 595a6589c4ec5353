// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/cli"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/golden"
)

// scontrolNodes is what "scontrol show nodes --detail --oneliner" prints, shortened.
const scontrolNodes = `NodeName=worker-10 Arch=x86_64 CoresPerSocket=8 CPUAlloc=0 CPUEfctv=16 CPUTot=16 CPULoad=0.00 AvailableFeatures=(null) Gres=gpu:h100:8(S:0-1),shard:16 GresDrain=N/A GresUsed=gpu:h100:0(IDX:N/A),shard:0 NodeAddr=10.0.0.7 OS=Linux 6.1.0 #1 SMP RealMemory=65536 AllocMem=0 FreeMem=9 Sockets=1 Boards=1 State=IDLE+DRAIN+DYNAMIC_NORM ThreadsPerCore=2 Partitions=main,gpu CfgTRES=cpu=16 AllocTRES= Reason=disk State=UP [root@2026-11-25T10:00:00]
NodeName=worker-3 Arch=x86_64 CPUAlloc=12 CPUTot=16 Gres=gpu:h100:8(S:0-1) GresUsed=gpu:h100:4(IDX:0-3) RealMemory=65536 AllocMem=32768 State=MIXED+DYNAMIC_NORM Partitions=main,gpu
NodeName=worker-4 CPUAlloc=4 CPUTot=4 Gres=(null) GresUsed= RealMemory=2048 AllocMem=N/A State=ALLOCATED Partitions=main

`

// squeueJobs is what squeue prints for the format of the plugin.
const squeueJobs = `812|main|alice|RUNNING|1:02:03|4:00:00|2|worker-[3-4]|None|train | with a bar
813_7|gpu|bob|RUNNING|5:00|UNLIMITED|1|worker-3|None|array
814_[1-5]|main,gpu|bob|PENDING|0:00|1-00:00:00|6||Resources|waits
815|gpu|carol|COMPLETING|9:00|1:00:00|1|worker-9|None|gone
816|main|bob|RUNNING|2:00|UNLIMITED|1|worker-5|None|endless
a line of something else
`

// squeueCommand is how the plugin asks for jobs, with a mark for their lines.
var squeueCommand = regexp.MustCompile(`^squeue --all --noheader --format=([A-Z2-7]{26}\|)%i\|%P\|%u\|%T\|%M\|%l\|%D\|%N\|%r\|%j$`)

// marked returns a text with a mark before each line.
func marked(text, mark string) string {
	return mark + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n"+mark) + "\n"
}

// TestNoTextOfAPersonPassesForAField is about names of jobs, which their users choose, and about reasons, which may quote them.
func TestNoTextOfAPersonPassesForAField(t *testing.T) {
	const mark = "SECRET|"
	nodes, partitions := cli.Usage(
		"NodeName=worker-0 CPUAlloc=1 CPUTot=4 State=IDLE Reason=x Partitions=forged GresUsed=gpu:9 RealMemory=9 [root@2026-11-25T10:00:00]\n"+
			"NodeName=worker-1 CPUAlloc=1 CPUTot=4 State=IDLE Partitions=main Comment=Gres=gpu:9 Extra=RealMemory=9\n",
		mark+"812|main|alice|RUNNING|1:02|4:00|1|worker-0|None|x\n813|main|root|RUNNING|1:02|4:00|1|worker-1|None|forged\n", mark)
	for _, n := range nodes {
		if n.MemoryMiB.Total != 0 || n.GPUs.Total != 0 || n.GPUs.Allocated != 0 || n.Jobs != map[string]int{"worker-0": 1}[n.Name] {
			t.Errorf("%s is read as %+v", n.Name, n)
		}
	}
	if len(partitions) != 1 || partitions[0].Name != "main" || partitions[0].Running != 1 {
		t.Errorf("the partitions are %+v", partitions)
	}
}

// slurmIn runs a login pod in which Slurm answers.
func slurmIn(t *testing.T, server *apiserver.Server, asked *atomic.Int32) {
	t.Helper()
	runPod(t, server, answeringKubelet(t, 0, func(_, _ string, command []string) string {
		said := strings.Join(commandOf(command), " ")
		if said == "scontrol show nodes --detail --oneliner" {
			asked.Add(1)
			return scontrolNodes
		}
		if found := squeueCommand.FindStringSubmatch(said); found != nil {
			return marked(squeueJobs, found[1])
		}
		t.Errorf("%q was run", command)
		return ""
	}), readyLogin("demo-login-0", "demo-login"))
	for name, change := range map[string]func(p *corev1.Pod){
		"worker-3": func(p *corev1.Pod) {
			p.Annotations[slinkyv1beta1.AnnotationPodDeadline] = "2026-11-25T15:00:00Z"
		},
		"worker-4": func(p *corev1.Pod) { p.Annotations[slinkyv1beta1.AnnotationPodDeadline] = "2026-11-25T14:57:57Z" },
		// It drains, and its job has no time limit.
		"worker-5":  func(p *corev1.Pod) { p.Annotations[slinkyv1beta1.AnnotationPodDeadline] = "9999-12-31T23:59:59Z" },
		"worker-10": func(p *corev1.Pod) { delete(p.Labels, slinkyv1beta1.LabelPodProtect) },
	} {
		p := workerOf("demo-"+name, name, "Mixed", "Drain")
		change(p)
		p.Spec.Containers = []corev1.Container{{Name: "slurmd", Image: "slurmd"}}
		runPod(t, server, nil, p)
	}
}

func TestTopAndJobs(t *testing.T) {
	server := apiserver.Start(t)
	var asked atomic.Int32
	slurmIn(t, server, &asked)
	rights := []string{"list :pods", "get :pods/exec", "create :pods/exec"}
	slurm := "--kubeconfig=" + writeKubeconfig(t, as(t, server, "root", rules(rights...)...), server.Namespace)
	pods := "--kubeconfig=" + writeKubeconfig(t, as(t, server, "reader", rules(rights[0])...), server.Namespace)
	nothing := "--kubeconfig=" + writeKubeconfig(t, as(t, server, "nobody"), server.Namespace)
	for name, tc := range map[string]struct {
		kubeconfig string
		args       []string
		code       int
	}{
		"top_nodes":                   {slurm, []string{"top"}, 0},
		"top_nodes_json":              {slurm, []string{"top", "nodes", "-o", "json"}, 0},
		"top_partitions":              {slurm, []string{"top", "partitions"}, 0},
		"top_partitions_yaml":         {slurm, []string{"top", "partitions", "-o", "yaml", "--login=demo-login"}, 0},
		"top_nodes_from_pods":         {pods, []string{"top", "nodes"}, 0},
		"top_partitions_without_exec": {pods, []string{"top", "partitions"}, 1},
		"top_without_rights":          {nothing, []string{"top"}, 1},
		"top_of_something_else":       {slurm, []string{"top", "pods"}, 1},
		"top_too_often":               {slurm, []string{"top", "--interval=1ms"}, 1},
		"jobs":                        {slurm, []string{"jobs"}, 0},
		"jobs_wide":                   {slurm, []string{"jobs", "-o", "wide", "--of=alice"}, 0},
		"jobs_json":                   {slurm, []string{"jobs", "-o", "json", "--node=worker-4"}, 0},
		"jobs_without_exec":           {pods, []string{"jobs"}, 1},
		"help_top":                    {slurm, []string{"top", "--help"}, 0},
		"help_jobs":                   {slurm, []string{"jobs", "--help"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got := run(t.Context(), t, program(), append([]string{tc.kubeconfig}, tc.args...)...).check(t, tc.code)
			got.out = withoutKubelets(t, server, strings.ReplaceAll(got.out, server.Namespace, "NAMESPACE"))
			got.errors = strings.ReplaceAll(strings.ReplaceAll(got.errors, server.Namespace, "NAMESPACE"), "a complaint\n", "")
			golden.Check(t, "top/"+name+".txt", got.golden(tc.args...))
		})
	}
	asked.Store(0)
	out, errors, stop := start(t, program(), slurm, "top", "--watch", "--interval=100ms")
	defer stop()
	out.await(t, "\n2026-11-25T12:00:00Z\nNODE ")
	if code := stop(); code != 0 || errors.String() != "" || asked.Load() < 2 {
		t.Errorf("exit code %d, the errors %q, and Slurm was asked %d times", code, errors, asked.Load())
	}
}

// withoutKubelets returns a text in which the nodes of the test, whose names are random, have other names.
func withoutKubelets(t testing.TB, server *apiserver.Server, text string) string {
	t.Helper()
	var pods corev1.PodList
	if err := server.Client(t, newScheme(t)).List(t.Context(), &pods); err != nil {
		t.Fatal(err)
	}
	for _, p := range pods.Items {
		if p.Namespace == server.Namespace {
			text = strings.ReplaceAll(text, p.Spec.NodeName, fmt.Sprintf("on-%s", strings.TrimPrefix(p.Name, "demo-")))
		}
	}
	return text
}

// Whatever Slurm prints, it is read without a panic, and no number is negative.
func FuzzWhatSlurmPrints(f *testing.F) {
	f.Add(scontrolNodes, squeueJobs)
	f.Fuzz(func(t *testing.T, nodes, jobs string) {
		read, partitions := cli.Usage(nodes, marked(jobs, "M|"), "M|")
		for _, n := range read {
			if n.Name == "" || n.Jobs < 0 || n.CPUs.Allocated < 0 || n.CPUs.Total < 0 || n.MemoryMiB.Total < 0 || n.GPUs.Total < 0 {
				t.Errorf("a node is read as %+v", n)
			}
		}
		for _, p := range partitions {
			if p.Available > p.Nodes || p.Running < 0 || p.Pending < 0 {
				t.Errorf("a partition is read as %+v", p)
			}
		}
	})
}
