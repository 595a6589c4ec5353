// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
)

// squeueOfOld is what squeue prints of the partitions that go.
const squeueOfOld = `812|RUNNING|None|2026-11-25T16:00:00|4:00:00|old
813|RUNNING|None|2026-11-25T14:00:00|4:00:00|old
814_1|PENDING|Resources|N/A|4:00:00|old,new
814_2|PENDING|JobHeldUser|N/A|4:00:00|old,new
a line of something else
`

func TestDiffShowsWhichJobsNeedAPartitionThatGoes(t *testing.T) {
	server := apiserver.Start(t)
	c := client.WithFieldOwner(server.Client(t, newScheme(t)), "kubectl")
	const before = "apiVersion: slinky.slurm.net/v1beta1\nkind: Controller\nmetadata: {name: demo}\nspec:\n  extraConf: |\n    PartitionName=new Nodes=ALL\n"
	const old = "    PartitionName=old Nodes=ALL\n"
	controller := &slinkyv1beta1.Controller{ObjectMeta: metav1.ObjectMeta{Name: "demo", Namespace: server.Namespace}}
	controller.Spec.ExtraConf = "PartitionName=new Nodes=ALL\nPartitionName=old Nodes=ALL\n"
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: controller.ConfigName(), Namespace: server.Namespace}}
	config.Data = map[string]string{"slurm.conf": "MaxNodeCount=1024\nPartitionName=gone Nodes=ALL State=DRAIN\n" + controller.Spec.ExtraConf}
	for _, o := range []client.Object{controller, config} {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	rights := []string{"list :configmaps", "get slinky.slurm.net:controllers", "patch slinky.slurm.net:controllers"}
	rights = append(rights, diffRights()[2:]...)
	few := "--kubeconfig=" + writeKubeconfig(t, as(t, server, "few", rules(rights...)...), server.Namespace)
	all := "--kubeconfig=" + writeKubeconfig(t, server.Config, server.Namespace)
	diff := func(kubeconfig, text string, code int) string {
		t.Helper()
		return runWith(t, program(), text, kubeconfig, "diff", "-f", "-").check(t, code).errors
	}
	if got := diff(all, before+old, 0); strings.Contains(got, "slurm.conf keeps") {
		t.Errorf("of an edit that takes nothing away it says %q", got)
	}
	const keeps = "Note: Controller/demo: slurm.conf keeps partitions old until no job needs them. They have State=DRAIN: "
	for _, tt := range []struct{ name, kubeconfig, want string }{
		{"without the right to ask", few, "which jobs need them is not known: you lack the right to list pods, to get pods/exec, to create pods/exec"},
		{"without a login pod", all, "which jobs need them is not known: there is no login pod in namespace " + server.Namespace},
	} {
		if got := diff(tt.kubeconfig, before, 1); !strings.Contains(got, keeps) || !strings.Contains(got, tt.want) {
			t.Errorf("%s it says %q, want %q", tt.name, got, tt.want)
		}
	}
	runPod(t, server, answeringKubelet(t, 0, func(_, _ string, command []string) string {
		if got, want := strings.Join(commandOf(command), " "), "env TZ=UTC squeue --all --array --noheader --partition=old --format=%i|%T|%r|%e|%l|%P"; got != want {
			t.Errorf("%q was run, want %q", got, want)
		}
		return squeueOfOld
	}), readyLogin("demo-login-0", "demo-login"))
	got := diff(all, before, 1)
	if !strings.Contains(got, keeps) || !strings.Contains(got, "jobs of old: 2 running, 1 pending, 1 held (job 812 ends last, by 2026-11-25T16:00:00Z)\n") {
		t.Errorf("it says %q", got)
	}
	digest := regexp.MustCompile(`annotation coxswain\.dev/end-jobs=(\S+) ends`).FindStringSubmatch(got)
	if digest == nil {
		t.Fatalf("it names no annotation: %q", got)
	}
	annotated := strings.Replace(before, "{name: demo}", "{name: demo, annotations: {coxswain.dev/end-jobs: "+digest[1]+"}}", 1)
	if got := diff(all, annotated, 1); strings.Contains(got, "slurm.conf keeps") {
		t.Errorf("with the annotation that it names it says %q", got)
	}
}

func TestPlanShowsEditsThatWait(t *testing.T) {
	waits := &slinkyv1beta1.Controller{ObjectMeta: named("demo")}
	waits.Status.Conditions = []metav1.Condition{condition("EditWaits", metav1.ConditionTrue, "JobsNeedPartitions", "slurm.conf keeps partitions old; jobs of old: 2 running")}
	w := newWorld(t, waits, &slinkyv1beta1.Controller{ObjectMeta: named("other")})
	if got, want := w.run(t, "plan").check(t, 0).out, "Controller/demo: slurm.conf keeps partitions old; jobs of old: 2 running\n"; got != want {
		t.Errorf("it prints %q, want %q", got, want)
	}
	if got := w.run(t, "plan", "-o", "json").check(t, 0).out; !strings.Contains(got, `"message": "slurm.conf keeps partitions old; jobs of old: 2 running"`) {
		t.Errorf("it prints %q", got)
	}
	w.put(t, planned())
	if got := w.run(t, "plan").check(t, 0).out; !strings.HasSuffix(got, "\nController/demo: slurm.conf keeps partitions old; jobs of old: 2 running\n") {
		t.Errorf("it prints %q", got)
	}
	w.forbidden = "/controllers"
	got := w.run(t, "plan").check(t, 0)
	if strings.Contains(got.out, "keeps") || got.errors != "Note: edits that wait for jobs are not shown: you lack the right to list controllers.slinky.slurm.net\n" {
		t.Errorf("without the right it prints %q and %q", got.out, got.errors)
	}
}

func TestAnEditThatWaitsIsFoundOnceInATree(t *testing.T) {
	waits := condition("EditWaits", metav1.ConditionTrue, "JobsNeedPartitions", "jobs of old: 2 running")
	cluster := &nebiusv1.SlurmCluster{ObjectMeta: named("demo")}
	controller := &slinkyv1beta1.Controller{ObjectMeta: named("demo")}
	controller.OwnerReferences = []metav1.OwnerReference{{APIVersion: "slurm.nebius.ai/v1", Kind: "SlurmCluster", Name: "demo", UID: "u"}}
	cluster.Status.Conditions, controller.Status.Conditions = []metav1.Condition{waits}, []metav1.Condition{waits}
	got := newWorld(t, cluster, controller).run(t, "status", "-o", "json").out
	if strings.Count(got, "jobs of old: 2 running") != 1 {
		t.Errorf("it prints %s", got)
	}
}
