// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/cli"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/golden"
)

func TestStatus(t *testing.T) {
	orphan := &slinkyv1beta1.LoginSet{ObjectMeta: named("astray")}
	orphan.Spec.ControllerRef = ref("gone")
	orphan.Status.Conditions = []metav1.Condition{condition("Ready", metav1.ConditionFalse, "ReferenceNotFound", "spec.controllerRef: Controller gone does not exist")}
	w := newWorld(t, slices.Concat(demo(), lone(), healthy(), []client.Object{orphan})...)
	for name, tc := range map[string]struct {
		args []string
		code int
	}{
		"one_cluster":              {[]string{"status", "demo"}, 2},
		"one_cluster_wide":         {[]string{"status", "demo", "-o", "wide"}, 2},
		"one_cluster_json":         {[]string{"status", "demo", "-o", "json"}, 2},
		"one_cluster_yaml":         {[]string{"status", "lone", "-o", "yaml"}, 2},
		"all_of_the_namespace":     {[]string{"status"}, 2},
		"all_of_all_namespaces":    {[]string{"status", "-A"}, 2},
		"all_ready":                {[]string{"status", "-n", "other"}, 0},
		"an_empty_namespace":       {[]string{"status", "-n", "empty"}, 0},
		"no_such_cluster":          {[]string{"status", "nothing"}, 1},
		"an_unknown_output_format": {[]string{"status", "-o", "xml"}, 1},
		"help":                     {[]string{"status", "--help"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			golden.Check(t, "status/"+name+".txt", w.run(t, tc.args...).check(t, tc.code).golden(tc.args...))
		})
	}
}

func TestStatusIsColouredOnATerminalOnly(t *testing.T) {
	w := newWorld(t, demo()...)
	p := program()
	p.Colour = true
	coloured := run(t.Context(), t, p, "--kubeconfig="+w.kubeconfig, "status").out
	if !strings.Contains(coloured, "\x1b[31mFalse\x1b[0m") || !strings.Contains(coloured, "\x1b[32mTrue\x1b[0m") {
		t.Errorf("there are no colours in %q", coloured)
	}
	bare := w.run(t, "status").out
	if strings.Contains(bare, "\x1b") {
		t.Errorf("there are colours in %q", bare)
	}
	for _, escape := range []string{"\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[0m"} {
		coloured = strings.ReplaceAll(coloured, escape, "")
	}
	if coloured != bare {
		t.Errorf("colours move columns:\n%s\n%s", coloured, bare)
	}
}

// A message comes from a cluster that others may write to: it must not reach the terminal as an escape sequence.
func TestMessagesCannotWriteToTheTerminal(t *testing.T) {
	workers := demoWorkers()
	workers.Status.Conditions[0].Message = "one\x1b[2Jtwo\nthree\u009b1mfour"
	out := newWorld(t, workers).run(t, "status").out
	if strings.ContainsAny(out, "\x1b\u009b") || !strings.Contains(out, "one [2Jtwo three 1mfour") {
		t.Errorf("it printed %q", out)
	}
	set := planned()
	set.Status.Plan[0].Message = "one\x1b[2Jtwo"
	if errors := newWorld(t, set).run(t, "explain", "pod", "demo-worker-4").check(t, 1).errors; !strings.Contains(errors, "one [2Jtwo") {
		t.Errorf("the errors are %q", errors)
	}
}

func TestStatusWithoutTheRightToSlurmClusters(t *testing.T) {
	w := newWorld(t, demo()...)
	w.forbidden = "slurmclusters"
	got := w.run(t, "status").check(t, 2)
	if !strings.Contains(got.errors, "Warning: SlurmClusters are not shown: ") || !strings.HasPrefix(strings.Split(got.out, "\n")[1], "Controller/demo ") {
		t.Errorf("it printed %q and the errors %q", got.out, got.errors)
	}
	w.forbidden = "nodesets"
	if got := w.run(t, "status").check(t, 1); !strings.Contains(got.errors, "listing NodeSets in namespace default: ") {
		t.Errorf("without the right to NodeSets the errors are %q", got.errors)
	}
}

func TestAServerThatDoesNotAnswerIsAnError(t *testing.T) {
	kubeconfig := writeKubeconfig(t, &rest.Config{Host: "http://127.0.0.1:1"}, "default")
	got := run(t.Context(), t, program(), "--kubeconfig="+kubeconfig, "status").check(t, 1)
	if !strings.Contains(got.errors, "connection refused") || got.out != "" {
		t.Errorf("it printed %q and the errors %q", got.out, got.errors)
	}
}

// A real API server shows that the caller needs the right to list the objects of the API groups, and no other.
func TestStatusNeedsNoRightToPods(t *testing.T) {
	server := apiserver.Start(t)
	c := server.Client(t, newScheme(t))
	controller := &slinkyv1beta1.Controller{ObjectMeta: metav1.ObjectMeta{Name: "real", Namespace: server.Namespace}}
	if err := c.Create(t.Context(), controller); err != nil {
		t.Fatal(err)
	}
	controller.Status.Conditions = []metav1.Condition{ready()}
	controller.Status.Conditions[0].ObservedGeneration = controller.Generation
	if err := c.Status().Update(t.Context(), controller); err != nil {
		t.Fatal(err)
	}
	config := as(t, server, "reader", rbacv1.PolicyRule{APIGroups: []string{"slinky.slurm.net", "slurm.nebius.ai"}, Resources: []string{"*"}, Verbs: []string{"list"}})
	kubeconfig := writeKubeconfig(t, config, server.Namespace)
	got := run(t.Context(), t, program(), "--kubeconfig="+kubeconfig, "status").check(t, 0)
	if !strings.Contains(got.out, "Controller/real   True") || got.errors != "" {
		t.Errorf("it printed %q and the errors %q", got.out, got.errors)
	}
}

// many returns a cluster of n workers, with a pod for each.
func many(n int) []client.Object {
	objects := demo()
	workers := demoWorkers()
	workers.Status.OrdinalToNode = map[string]string{}
	for i := range n {
		workers.Status.OrdinalToNode[fmt.Sprint(i)] = fmt.Sprintf("machine-%d", i)
		pod := &corev1.Pod{ObjectMeta: named(fmt.Sprintf("demo-worker-%d", i))}
		pod.Labels = map[string]string{slinkyv1beta1.LabelCluster: "demo"}
		objects = append(objects, pod)
	}
	for i := range 32 {
		workers.Status.Plan = append(workers.Status.Plan, slinkyv1beta1.NodeSetStep{Pod: fmt.Sprintf("demo-worker-%d", i), Action: "Retire", Cause: "update", Message: "waiting for 1 job"})
	}
	return append(objects, workers)
}

// Requests of status are as many as there are kinds, whatever the number of workers.
func TestStatusReadsNoPods(t *testing.T) {
	w := newWorld(t, many(50)...)
	w.run(t, "status", "-A").check(t, 2)
	asked := w.asked()
	slices.Sort(asked)
	var want []string
	for _, kind := range []string{"accountings", "controllers", "loginsets", "nodesets", "restapis"} {
		want = append(want, "GET /apis/slinky.slurm.net/v1beta1/"+kind)
	}
	want = append(want, "GET /apis/slurm.nebius.ai/v1/slurmclusters")
	if !slices.Equal(asked, want) {
		t.Errorf("it asked\n%s\ninstead of\n%s", strings.Join(asked, "\n"), strings.Join(want, "\n"))
	}
}

// maxStatus is how long "status" of 5,000 workers may take.
const maxStatus = time.Second

func BenchmarkStatusOf5000Workers(b *testing.B) {
	w := newWorld(b, many(5000)...)
	for b.Loop() {
		start := time.Now()
		w.run(b, "status").check(b, 2)
		if took := time.Since(start); took > maxStatus {
			b.Errorf("it took %s, more than %s", took, maxStatus)
		}
	}
	if slices.ContainsFunc(w.asked(), func(request string) bool { return strings.Contains(request, "/pods") }) {
		b.Error("it asked for pods")
	}
}

// Whatever objects have, each has one place in the tree, and the output is JSON.
func FuzzNewTree(f *testing.F) {
	f.Add("a", "a", "a", "b", "True")
	f.Add("a", "b", "", "", "")
	f.Fuzz(func(t *testing.T, controller, reference, owner, set, status string) {
		c := slinkyv1beta1.Controller{ObjectMeta: metav1.ObjectMeta{Name: controller, OwnerReferences: []metav1.OwnerReference{{Kind: "SlurmCluster", Name: owner}}}}
		n := slinkyv1beta1.NodeSet{ObjectMeta: metav1.ObjectMeta{Name: set}}
		n.Spec.ControllerRef.Name = reference
		n.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionStatus(status)}}
		tree := cli.NewTree(cli.Objects{Controllers: []slinkyv1beta1.Controller{c}, NodeSets: []slinkyv1beta1.NodeSet{n}})
		text, err := json.Marshal(tree)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(string(text), `"kind":"NodeSet"`); got != 1 {
			t.Errorf("the NodeSet is in the tree %d times: %s", got, text)
		}
		if got := tree.AllReady(); got {
			t.Errorf("all is ready, although the Controller has no condition: %s", text)
		}
	})
}
