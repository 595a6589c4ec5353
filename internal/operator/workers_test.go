// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/slurm/fake"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

// workers starts a cluster without accounting and login nodes, with as many running workers, w-0 and so on.
func workers(t *testing.T, replicas int, spec string) *operator.Operator {
	t.Helper()
	o := operator.Start(t)
	operator.Create[slinkyv1beta1.Controller](o, `{metadata: {name: demo}, spec: {}}`)
	operator.Create[slinkyv1beta1.RestApi](o, aRestAPI)
	operator.Create[slinkyv1beta1.NodeSet](o, fmt.Sprintf(`{metadata: {name: w}, spec: {controllerRef: {name: demo}, replicas: %d, %s}}`, replicas, spec))
	expectWorkers(t, o, names(replicas)...)
	o.RunWorkers()
	operator.ExpectCondition[slinkyv1beta1.NodeSet](o, "w", "Ready", metav1.ConditionTrue, "Available")
	expectStatus(t, o, func(s slinkyv1beta1.NodeSetStatus) bool { return int(s.SlurmIdle) == replicas })
	return o
}

func names(n int) []string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf("w-%d", i))
	}
	slices.Sort(out) // as the API server lists them
	return out
}

// expectWorkers waits until exactly these workers exist.
func expectWorkers(t *testing.T, o *operator.Operator, want ...string) {
	t.Helper()
	apiserver.Eventually(t, func() error {
		var got []string
		for _, p := range o.Workers() {
			got = append(got, p.Name)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("workers (-want +got):\n%s", diff)
		}
		return nil
	})
}

func expectStatus(t *testing.T, o *operator.Operator, ok func(slinkyv1beta1.NodeSetStatus) bool) {
	t.Helper()
	apiserver.Eventually(t, func() error {
		if s := operator.Get[slinkyv1beta1.NodeSet](o, "w").Status; !ok(s) {
			return fmt.Errorf("the status is %+v", s)
		}
		return nil
	})
}

func scale(o *operator.Operator, replicas int32) {
	operator.Change(o, "w", func(n *slinkyv1beta1.NodeSet) { n.Spec.Replicas = &replicas })
}

// expectWaiting waits until a retired worker says that it waits for something, and the NodeSet says so too.
func expectWaiting(t *testing.T, o *operator.Operator, pod, message string) {
	t.Helper()
	apiserver.Eventually(t, func() error {
		p := operator.Get[corev1.Pod](o, pod)
		if p == nil {
			return fmt.Errorf("%s is gone", pod)
		}
		for _, c := range p.Status.Conditions {
			if c.Type != "coxswain.dev/Retiring" {
				continue
			}
			// Which job it is, is known a moment later.
			if c.Message != message && (message != "waiting for jobs to end" || !strings.HasPrefix(c.Message, "waiting for job ")) {
				return fmt.Errorf("%s says %q, want %q", pod, c.Message, message)
			}
			message := c.Message
			for _, c := range operator.Get[slinkyv1beta1.NodeSet](o, "w").Status.Conditions {
				if c.Type == "Ready" && c.Status == metav1.ConditionFalse && strings.Contains(c.Message, pod+" retires: "+message) {
					return nil
				}
			}
			return fmt.Errorf("the NodeSet does not say why %s waits: %+v", pod, operator.Get[slinkyv1beta1.NodeSet](o, "w").Status.Conditions)
		}
		return fmt.Errorf("%s has no condition Retiring: %+v", pod, p.Status.Conditions)
	})
}

func nodeState(o *operator.Operator, name string) string {
	n, _ := o.Slurm.Node(name)
	return strings.Join(n.State, "+") + " " + n.Reason
}

func TestADeletedWorkerComesBackUnderItsName(t *testing.T) {
	t.Parallel()
	o := workers(t, 2, `partition: {enabled: true}`)
	uid := operator.Get[corev1.Pod](o, "w-0").UID
	operator.Delete[corev1.Pod](o, "w-0")
	apiserver.Eventually(t, func() error {
		if p := operator.Get[corev1.Pod](o, "w-0"); p == nil || p.UID == uid {
			return fmt.Errorf("w-0 is not back")
		}
		return nil
	})
	o.RunWorkers()
	operator.ExpectCondition[slinkyv1beta1.NodeSet](o, "w", "Ready", metav1.ConditionTrue, "Available")
}

func TestAFailedWorkerIsReplaced(t *testing.T) {
	t.Parallel()
	o := workers(t, 2, `partition: {enabled: true}`)
	uid := operator.Get[corev1.Pod](o, "w-1").UID
	o.SetPod("w-1", corev1.PodFailed)
	apiserver.Eventually(t, func() error {
		if p := operator.Get[corev1.Pod](o, "w-1"); p == nil || p.UID == uid {
			return fmt.Errorf("w-1 is not replaced")
		}
		return nil
	})
	if operator.Get[corev1.Pod](o, "w-0") == nil {
		t.Error("w-0 is gone too")
	}
}

func TestScalingUpAddsAndScalingDownTakesIdleWorkersFirst(t *testing.T) {
	t.Parallel()
	o := workers(t, 2, `partition: {enabled: true}`)
	scale(o, 3)
	expectWorkers(t, o, "w-0", "w-1", "w-2")
	o.RunWorkers()
	expectStatus(t, o, func(s slinkyv1beta1.NodeSetStatus) bool { return s.SlurmIdle == 3 })
	job := o.Slurm.Submit(fake.Job{NodeList: []string{"w-2"}, CPUs: 1})
	expectStatus(t, o, func(s slinkyv1beta1.NodeSetStatus) bool { return s.SlurmAllocated == 1 && s.SlurmIdle == 2 })
	apiserver.Eventually(t, func() error {
		if l := operator.Get[corev1.Pod](o, "w-2").Labels; l[slinkyv1beta1.LabelPodProtect] != "true" {
			return fmt.Errorf("labels %v", l)
		}
		return nil
	})

	scale(o, 1)
	expectWorkers(t, o, "w-2")
	if got := operator.Get[corev1.Pod](o, "w-2").Annotations["coxswain.dev/retired"]; got != "" {
		t.Errorf("w-2 is retired (%s)", got)
	}
	if got := nodeState(o, "w-1"); got != "IDLE+DRAIN+DYNAMIC_NORM slurm-operator: Pod was cordoned pending termination" {
		t.Errorf("w-1 was deleted and not drained before: %s", got)
	}

	// The last one is busy: it is drained, and kept until its job ends.
	scale(o, 0)
	expectWaiting(t, o, "w-2", "waiting for jobs to end")
	if state := nodeState(o, "w-2"); !strings.HasPrefix(state, "MIXED+DRAIN") {
		t.Errorf("w-2 is %s", state)
	}
	o.Settle()
	if operator.Get[corev1.Pod](o, "w-2") == nil {
		t.Fatal("a worker is deleted while a job runs on it")
	}
	if status, _ := o.Slurm.Job(job); !slices.Contains(status.State, "RUNNING") {
		t.Errorf("the job is %v", status.State)
	}
	o.Slurm.Finish(job)
	expectWorkers(t, o)
	operator.ExpectCondition[slinkyv1beta1.NodeSet](o, "w", "Ready", metav1.ConditionTrue, "Available")
}

func TestScaleInTakesTheBusyWorkerWhoseJobsEndSoonest(t *testing.T) {
	t.Parallel()
	o := workers(t, 3, `partition: {enabled: true}`)
	for i, limit := range []time.Duration{2 * time.Hour, time.Hour, 0} {
		o.Slurm.Submit(fake.Job{NodeList: names(3)[i : i+1], CPUs: 1, Limit: limit})
	}
	expectStatus(t, o, func(s slinkyv1beta1.NodeSetStatus) bool { return s.SlurmAllocated == 3 })
	if calls := o.Slurm.Counters().Calls["GET jobs"]; calls > 0 {
		t.Errorf("jobs were listed %d times before anybody had to choose", calls)
	}
	scale(o, 2)
	expectWaiting(t, o, "w-1", "waiting for jobs to end")
	scale(o, 1)
	expectWaiting(t, o, "w-0", "waiting for jobs to end")
	o.Settle()
	expectLeft(t, o, names(3)...)
	if p := operator.Get[corev1.Pod](o, "w-2"); p.Annotations["coxswain.dev/retired"] != "" {
		t.Error("w-2, whose job has no end, goes too")
	}
}

func TestScalingBackUpReprievesAndUndrains(t *testing.T) {
	t.Parallel()
	o := workers(t, 2, `partition: {enabled: true}`)
	for _, n := range names(2) {
		o.Slurm.Submit(fake.Job{NodeList: []string{n}, CPUs: 1})
	}
	expectStatus(t, o, func(s slinkyv1beta1.NodeSetStatus) bool { return s.SlurmAllocated == 2 })
	uid := operator.Get[corev1.Pod](o, "w-1").UID
	scale(o, 1)
	expectWaiting(t, o, "w-1", "waiting for jobs to end")
	scale(o, 2)
	apiserver.Eventually(t, func() error {
		p := operator.Get[corev1.Pod](o, "w-1")
		if p == nil || p.UID != uid {
			return fmt.Errorf("w-1 was deleted")
		}
		for _, c := range p.Status.Conditions {
			if c.Type == "coxswain.dev/Retiring" || c.Type == "SlurmNodeStateDrain" {
				return fmt.Errorf("condition %+v", c)
			}
		}
		if len(p.Annotations["coxswain.dev/retired"]+p.Annotations[slinkyv1beta1.AnnotationPodCordon]) > 0 {
			return fmt.Errorf("annotations %v", p.Annotations)
		}
		if state := nodeState(o, "w-1"); strings.Contains(state, "DRAIN") {
			return fmt.Errorf("w-1 is %s", state)
		}
		return nil
	})
	operator.ExpectCondition[slinkyv1beta1.NodeSet](o, "w", "Ready", metav1.ConditionTrue, "Available")
	o.Settle()
	o.Writes.Reset()
	o.Slurm.ResetCounters()
	o.Restart()
	o.Settle()
	o.Writes.ExpectNone(t)
	if writes := o.Slurm.Writes(); len(writes) > 0 {
		t.Errorf("Slurm is written to at rest: %+v", writes)
	}
}

func TestNothingIsDeletedWhileSlurmIsSilent(t *testing.T) {
	t.Parallel()
	o := workers(t, 2, `partition: {enabled: true}`)
	o.Slurm.Stop()
	scale(o, 0)
	expectWaiting(t, o, "w-1", "Slurm's view of the node is not known: Slurm does not answer")
	o.Settle()
	expectWorkers(t, o, "w-0", "w-1")
	if s := operator.Get[slinkyv1beta1.NodeSet](o, "w").Status; s.SlurmIdle != 2 {
		t.Errorf("what Slurm said last is forgotten: %+v", s)
	}
	o.Slurm.Start(true)
	expectWorkers(t, o)
}

func TestNothingIsDeletedWhenSlurmctldCameUpEmpty(t *testing.T) {
	t.Parallel()
	o := workers(t, 3, `partition: {enabled: true}`)
	o.Slurm.Stop()
	o.Slurm.Start(false)
	scale(o, 0)
	apiserver.Eventually(t, func() error {
		p := operator.Get[corev1.Pod](o, "w-2")
		if p == nil {
			return fmt.Errorf("w-2 is gone")
		}
		for _, c := range p.Status.Conditions {
			if c.Type == "coxswain.dev/Retiring" && strings.Contains(c.Message, "Slurm lists 0 nodes, where") {
				return nil
			}
		}
		return fmt.Errorf("conditions %+v", p.Status.Conditions)
	})
	o.Settle()
	expectWorkers(t, o, names(3)...)
}

func TestNothingIsDeletedWithoutARestApi(t *testing.T) {
	t.Parallel()
	o := workers(t, 2, `partition: {enabled: true}`)
	operator.Delete[slinkyv1beta1.RestApi](o, "demo")
	scale(o, 1)
	expectWaiting(t, o, "w-1", "Slurm's view of the node is not known: no RestApi refers to Controller demo")
	o.Settle()
	expectWorkers(t, o, "w-0", "w-1")
	operator.Create[slinkyv1beta1.RestApi](o, aRestAPI)
	expectWorkers(t, o, "w-0")
}

func TestAnAdministratorsDrainIsNotTouched(t *testing.T) {
	t.Parallel()
	o := workers(t, 2, `partition: {enabled: true}`)
	if err := o.Slurm.Update("root", "w-0", "DRAIN", "bad disk"); err != nil {
		t.Fatal(err)
	}
	if err := o.Slurm.Update("root", "w-1", "DRAIN", ""); err != nil {
		t.Fatal(err)
	}
	expectStatus(t, o, func(s slinkyv1beta1.NodeSetStatus) bool { return s.SlurmDrain == 2 })
	scale(o, 3)
	expectWorkers(t, o, names(3)...)
	o.RunWorkers()
	operator.Change(o, "w-0", func(p *corev1.Pod) { p.Annotations[slinkyv1beta1.AnnotationPodCordon] = "true" })
	o.Settle()
	operator.Change(o, "w-0", func(p *corev1.Pod) { delete(p.Annotations, slinkyv1beta1.AnnotationPodCordon) })
	o.Settle()
	if got := nodeState(o, "w-0"); got != "IDLE+DRAIN+DYNAMIC_NORM bad disk" {
		t.Errorf("w-0 is %s", got)
	}
	if got := nodeState(o, "w-1"); got != "IDLE+DRAIN+DYNAMIC_NORM " {
		t.Errorf("w-1 is %s", got)
	}
}

func TestAUsersCordonDrainsAndItsEndUndrains(t *testing.T) {
	t.Parallel()
	o := workers(t, 1, `partition: {enabled: true}`)
	operator.Change(o, "w-0", func(p *corev1.Pod) { p.Annotations[slinkyv1beta1.AnnotationPodCordon] = "true" })
	apiserver.Eventually(t, func() error {
		if got := nodeState(o, "w-0"); got != "IDLE+DRAIN+DYNAMIC_NORM slurm-operator: Pod was cordoned" {
			return fmt.Errorf("w-0 is %s", got)
		}
		return nil
	})
	operator.Change(o, "w-0", func(p *corev1.Pod) { delete(p.Annotations, slinkyv1beta1.AnnotationPodCordon) })
	apiserver.Eventually(t, func() error {
		if got := nodeState(o, "w-0"); got != "IDLE+DYNAMIC_NORM " {
			return fmt.Errorf("w-0 is %s", got)
		}
		return nil
	})
}

func TestARollingUpdateReplacesOneAfterTheOtherAndWaitsForJobs(t *testing.T) {
	t.Parallel()
	o := workers(t, 3, `updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 1}}`)
	job := o.Slurm.Submit(fake.Job{NodeList: []string{"w-1"}, CPUs: 1})
	expectStatus(t, o, func(s slinkyv1beta1.NodeSetStatus) bool { return s.SlurmAllocated == 1 })
	before := map[string]string{}
	for _, p := range o.Workers() {
		before[p.Name] = string(p.UID)
	}
	operator.Change(o, "w", func(n *slinkyv1beta1.NodeSet) { n.Spec.ExtraConf = "Weight=7" })
	// Idle ones first, high ordinals first among them; the busy one last.
	for _, name := range []string{"w-2", "w-0"} {
		apiserver.Eventually(t, func() error {
			if p := operator.Get[corev1.Pod](o, name); p == nil || string(p.UID) == before[name] {
				return fmt.Errorf("%s is not replaced", name)
			}
			return nil
		})
		for _, p := range o.Workers() {
			if p.Name != name && p.Status.Phase != corev1.PodRunning {
				t.Errorf("%s is %s while %s is replaced", p.Name, p.Status.Phase, name)
			}
		}
		o.RunWorkers()
	}
	expectWaiting(t, o, "w-1", "waiting for jobs to end")
	o.Settle()
	if string(operator.Get[corev1.Pod](o, "w-1").UID) != before["w-1"] {
		t.Fatal("w-1 was replaced while its job ran")
	}
	o.Slurm.Finish(job)
	apiserver.Eventually(t, func() error {
		if p := operator.Get[corev1.Pod](o, "w-1"); p == nil || string(p.UID) == before["w-1"] {
			return fmt.Errorf("w-1 is not replaced")
		}
		return nil
	})
	o.RunWorkers()
	operator.ExpectCondition[slinkyv1beta1.NodeSet](o, "w", "Ready", metav1.ConditionTrue, "Available")
	expectStatus(t, o, func(s slinkyv1beta1.NodeSetStatus) bool {
		return s.UpdatedReplicas == 3 && s.SlurmDrain == 0 && s.SlurmIdle == 3
	})
}

func TestDrainTimeoutEndsTheWaiting(t *testing.T) {
	t.Parallel()
	o := workers(t, 1, `drainTimeout: 2s`)
	o.Slurm.Submit(fake.Job{NodeList: []string{"w-0"}, CPUs: 1})
	expectStatus(t, o, func(s slinkyv1beta1.NodeSetStatus) bool { return s.SlurmAllocated == 1 })
	start := time.Now()
	scale(o, 0)
	expectWorkers(t, o)
	if waited := time.Since(start); waited < time.Second {
		t.Errorf("the job had %s", waited)
	}
}

func TestAScaleInCostsFewWrites(t *testing.T) {
	t.Parallel()
	o := workers(t, 2, `partition: {enabled: true}`)
	o.Settle()
	o.Writes.Reset()
	o.Slurm.ResetCounters()
	scale(o, 1)
	expectWorkers(t, o, "w-0")
	operator.ExpectCondition[slinkyv1beta1.NodeSet](o, "w", "Ready", metav1.ConditionTrue, "Available")
	o.Settle()
	for _, w := range o.Writes.All() {
		t.Log(w)
	}
	t.Logf("and %d to Slurm: %+v", len(o.Slurm.Writes()), o.Slurm.Writes())
	// The mark, what the pod shows at each step, the deletion, and the status of the NodeSet at each step.
	if n := len(o.Writes.All()); n > 10 {
		t.Errorf("%d writes", n)
	}
	if n := len(o.Slurm.Writes()); n != 1 {
		t.Errorf("%d writes to Slurm", n)
	}
}

func TestTwoNodeSetsShareServiceAndBudget(t *testing.T) {
	t.Parallel()
	o := workers(t, 1, `partition: {enabled: true}`)
	operator.Create[slinkyv1beta1.NodeSet](o, `{metadata: {name: x}, spec: {controllerRef: {name: demo}, replicas: 1}}`)
	apiserver.Eventually(t, func() error {
		s := operator.Get[corev1.Service](o, "slurm-workers-demo")
		if s == nil || len(s.OwnerReferences) != 2 || operator.Get[corev1.Pod](o, "x-0") == nil {
			return fmt.Errorf("the Service is %+v", s)
		}
		return nil
	})
	o.RunWorkers()
	// Slurm's word on the new worker may be later than the second that Settle waits for.
	apiserver.Eventually(t, func() error {
		if s := operator.Get[slinkyv1beta1.NodeSet](o, "x").Status; s.SlurmIdle != 1 || s.AvailableReplicas != 1 {
			return fmt.Errorf("the status is %+v", s)
		}
		return nil
	})
	o.Settle()
	o.Writes.Reset()
	o.Restart()
	o.Settle()
	o.Writes.ExpectNone(t)
}

func TestTheBudgetGoesWithTheLastWhoWantsIt(t *testing.T) {
	t.Parallel()
	o := workers(t, 1, `partition: {enabled: true}`)
	operator.Create[slinkyv1beta1.NodeSet](o, `{metadata: {name: x}, spec: {controllerRef: {name: demo}, replicas: 0}}`)
	shares := func(n int) {
		t.Helper()
		apiserver.Eventually(t, func() error {
			b := operator.Get[policyv1.PodDisruptionBudget](o, "slurm-workers-pdb-demo")
			if b == nil && n > 0 || b != nil && len(b.OwnerReferences) != n {
				return fmt.Errorf("the budget is %+v, want %d owners", b, n)
			}
			return nil
		})
	}
	shares(2)
	for i, name := range []string{"w", "x"} {
		operator.Change(o, name, func(n *slinkyv1beta1.NodeSet) { n.Spec.WorkloadDisruptionProtection = new(false) })
		shares(1 - i)
	}
	operator.Change(o, "x", func(n *slinkyv1beta1.NodeSet) { n.Spec.WorkloadDisruptionProtection = new(true) })
	shares(1)
}

func TestLoginsToWorkers(t *testing.T) {
	t.Parallel()
	o := workers(t, 1, `ssh: {enabled: true, extraSshdConfig: "Banner none"}, updateStrategy: {type: OnDelete}`)
	if c := operator.Get[corev1.ConfigMap](o, "w-ssh-config"); c == nil || !strings.Contains(c.Data["sshd_config"], "### EXTRA CONFIG ###\nBanner none\nUsePAM yes\n") {
		t.Errorf("the ConfigMap is %+v", c)
	}
	operator.Change(o, "w", func(n *slinkyv1beta1.NodeSet) {
		n.Spec.SSH.SssdConfRef = &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "sssd"}, Key: "sssd.conf"}
	})
	operator.ExpectCondition[slinkyv1beta1.NodeSet](o, "w", "Ready", metav1.ConditionFalse, "KeyMissing")
	operator.Create[corev1.Secret](o, `{metadata: {name: sssd}, stringData: {sssd.conf: "[sssd]"}}`)
	operator.ExpectCondition[slinkyv1beta1.NodeSet](o, "w", "Ready", metav1.ConditionTrue, "Available")
	operator.Change(o, "w", func(n *slinkyv1beta1.NodeSet) { n.Spec.SSH = slinkyv1beta1.NodeSetSSH{} })
	apiserver.Eventually(t, func() error {
		if c := operator.Get[corev1.ConfigMap](o, "w-ssh-config"); c != nil {
			return fmt.Errorf("the ConfigMap is still there")
		}
		return nil
	})
}
