// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/cli"
	"github.com/coxswain-hpc/coxswain/internal/testing/golden"
)

func TestExplain(t *testing.T) {
	controller := &slinkyv1beta1.Controller{ObjectMeta: named("demo")}
	controller.Status.Conditions = []metav1.Condition{condition("SlurmReachable", metav1.ConditionTrue, "Answering", "slurmrestd answers")}
	w := newWorld(t, append(workers(), controller)...)
	foreign := &corev1.Pod{ObjectMeta: named("web-0")}
	w.put(t, foreign)
	for name, tc := range map[string]struct {
		args []string
		code int
	}{
		"maintenance":                       {[]string{"explain", "node", "worker-3"}, 0},
		"a_pod_that_waits_for_jobs":         {[]string{"explain", "pod", "demo-worker-4"}, 0},
		"a_pod_that_waits_for_jobs_yaml":    {[]string{"explain", "pod", "demo-worker-4", "-o", "yaml"}, 0},
		"a_person_has_to_look":              {[]string{"explain", "node", "worker-5"}, 0},
		"a_pod_without_a_kubernetes_node":   {[]string{"explain", "pod", "demo-worker-6"}, 0},
		"a_pod_that_two_have_cordoned":      {[]string{"explain", "node", "worker-7"}, 0},
		"an_idle_worker":                    {[]string{"explain", "node", "worker-8"}, 0},
		"a_node_that_Slurm_does_not_have":   {[]string{"explain", "node", "machine-9"}, 0},
		"no_such_node":                      {[]string{"explain", "node", "worker-99"}, 1},
		"a_pod_that_is_still_to_be_made":    {[]string{"explain", "pod", "demo-worker-30"}, 1},
		"a_pod_that_is_no_worker":           {[]string{"explain", "pod", "web-0"}, 1},
		"neither_a_node_nor_a_pod_is_named": {[]string{"explain", "node"}, 1},
		"help":                              {[]string{"explain", "node", "--help"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			golden.Check(t, "explain/"+name+".txt", w.run(t, tc.args...).check(t, tc.code).golden(tc.args...))
		})
	}
}

func TestTwoClustersMayHaveASlurmNodeOfOneName(t *testing.T) {
	w := newWorld(t, workerOf("a-0", "n-0", "Idle"), workerOf("b-0", "n-0", "Idle"))
	got := w.run(t, "explain", "node", "n-0").check(t, 1)
	if !strings.Contains(got.errors, "name one of the pods a-0, b-0") {
		t.Errorf("the errors are %q", got.errors)
	}
}

func TestWhatIsSaidOfTrust(t *testing.T) {
	pod := workerOf("w-0", "w-0", "Idle")
	for name, tc := range map[string]struct {
		conditions []metav1.Condition
		want       string
	}{
		"nobody has said whether Slurm answers": {nil, "It is not known whether Slurm answers."},
		"Slurm does not answer": {
			[]metav1.Condition{condition("SlurmReachable", metav1.ConditionFalse, "NotAnswering", "connection refused")},
			"The operator does not trust Slurm's answers (NotAnswering): connection refused.",
		},
		"deletions wait": {
			[]metav1.Condition{
				condition("SlurmReachable", metav1.ConditionTrue, "Answering", ""),
				condition("DestructiveActionsPaused", metav1.ConditionTrue, "BudgetSpent", "20 pods in a minute"),
			},
			"Deletions of workers wait (BudgetSpent): 20 pods in a minute.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			controller := &slinkyv1beta1.Controller{ObjectMeta: named("demo")}
			controller.Status.Conditions = tc.conditions
			var said []string
			for _, s := range cli.Explain(cli.Worker{Pod: pod, Controller: controller}).Sentences {
				if s.About == "Trust" {
					said = append(said, s.Text)
				}
			}
			if !strings.Contains(strings.Join(said, "\n"), tc.want) {
				t.Errorf("it says %q, and should say %q", said, tc.want)
			}
		})
	}
}

// Whatever stands in annotations and managed fields, the worker is explained.
func FuzzExplain(f *testing.F) {
	f.Add("update", "2026-11-25T09:30:00Z", "true", `{"f:metadata":{"f:annotations":{}}}`)
	f.Add("?", "9999", "", `{`)
	f.Fuzz(func(t *testing.T, cause, at, cordon, fields string) {
		pod := workerOf("w-0", "w-0", "Idle")
		pod.Annotations = map[string]string{
			slinkyv1beta1.AnnotationRetired: cause, slinkyv1beta1.AnnotationRetiredAt: at, slinkyv1beta1.AnnotationPodDeadline: at,
			slinkyv1beta1.AnnotationPodCordon: cordon,
		}
		pod.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m", FieldsV1: metav1.NewFieldsV1(fields)}}
		going := false
		for _, s := range cli.Explain(cli.Worker{Pod: pod}).Sentences {
			going = going || s.About == "Going"
			if s.Text == "" {
				t.Errorf("nothing is said about %s", s.About)
			}
		}
		if cause != "" && !going {
			t.Errorf("nobody says that the worker is to go for %q", cause)
		}
	})
}

func TestWhatIsSaidOfTheNodeSet(t *testing.T) {
	deleted := ago(0)
	for name, tc := range map[string]struct {
		set  *slinkyv1beta1.NodeSet
		want string
	}{
		"the NodeSet is gone":          {nil, "The pod belongs to no NodeSet."},
		"the NodeSet is being deleted": {&slinkyv1beta1.NodeSet{ObjectMeta: metav1.ObjectMeta{Name: "w", DeletionTimestamp: &deleted}}, "NodeSet w is being deleted."},
		"nothing is done to its workers": {
			&slinkyv1beta1.NodeSet{ObjectMeta: metav1.ObjectMeta{Name: "w", Annotations: map[string]string{slinkyv1beta1.AnnotationDryRun: "true"}}},
			"The operator does nothing to its workers: NodeSet w has annotation coxswain.dev/dry-run.",
		},
		"Slurm has lost its state": {
			&slinkyv1beta1.NodeSet{ObjectMeta: metav1.ObjectMeta{Name: "w"}, Status: slinkyv1beta1.NodeSetStatus{Conditions: []metav1.Condition{
				condition("WorkersUnknown", metav1.ConditionTrue, "StateLost", "Slurm lacks 3 of 4 workers"), condition("Stalled", metav1.ConditionFalse, "Reconciled", ""),
			}}},
			"Condition WorkersUnknown of NodeSet w is True (StateLost): Slurm lacks 3 of 4 workers.",
		},
		"nothing is to be said": {&slinkyv1beta1.NodeSet{ObjectMeta: metav1.ObjectMeta{Name: "w"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var said []string
			for _, s := range cli.Explain(cli.Worker{Pod: workerOf("w-0", "w-0", "Idle"), NodeSet: tc.set}).Sentences {
				if s.About == "NodeSet" {
					said = append(said, s.Text)
				}
			}
			if got := strings.Join(said, "\n"); got != tc.want {
				t.Errorf("it says %q, and should say %q", got, tc.want)
			}
		})
	}
}

// Slurm's state alone shows that a node gets no jobs, before the operator has written why.
func TestANodeOutOfServiceIsNotSaidToTakeJobs(t *testing.T) {
	for _, state := range []string{"Drain", "Down", "InvalidReg", "NotResponding", "Maintenance", "Fail", "Unknown"} {
		for _, s := range cli.Explain(cli.Worker{Pod: workerOf("w-0", "w-0", "Idle", state)}).Sentences {
			if s.About == "Jobs" {
				t.Errorf("of a node that is %s it says %q", state, s.Text)
			}
		}
	}
}
