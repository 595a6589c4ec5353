// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	renderworker "github.com/coxswain-hpc/coxswain/internal/render/worker"
	"github.com/coxswain-hpc/coxswain/internal/slurm/fake"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

// The tests of this file are the rows of the table "When something fails" of docs/users/workers.md, by the names of the rows.

// workersOn is workers with one Kubernetes node for each, whose names it returns.
func workersOn(t *testing.T, replicas int, spec string) (*operator.Operator, []string) {
	t.Helper()
	o := operator.Start(t)
	operator.Create[slinkyv1beta1.Controller](o, `{metadata: {name: demo}, spec: {}}`)
	operator.Create[slinkyv1beta1.RestApi](o, aRestAPI)
	operator.Create[slinkyv1beta1.NodeSet](o, fmt.Sprintf(`{metadata: {name: w}, spec: {controllerRef: {name: demo}, replicas: %d, %s}}`, replicas, spec))
	expectWorkers(t, o, names(replicas)...)
	var nodes []string
	for i, name := range names(replicas) {
		nodes = append(nodes, o.KubeNode(fmt.Sprintf("node-%d", i)))
		o.Bind(name, nodes[i])
	}
	o.RunWorkers()
	expectStatus(t, o, func(s slinkyv1beta1.NodeSetStatus) bool { return int(s.SlurmIdle) == replicas })
	return o, nodes
}

// expectNode waits until slurmctld has this on a node: its state and its reason.
func expectNode(t *testing.T, o *operator.Operator, name, want string) {
	t.Helper()
	apiserver.Eventually(t, func() error {
		if got := nodeState(o, name); got != want {
			return fmt.Errorf("%s is %q, want %q", name, got, want)
		}
		return nil
	})
}

// expectLeft lets kubelets end the pods that are being deleted, until exactly these workers are left.
func expectLeft(t *testing.T, o *operator.Operator, want ...string) {
	t.Helper()
	apiserver.Eventually(t, func() error {
		var left []string
		for _, p := range o.Workers() {
			if p.DeletionTimestamp != nil {
				o.Kill(p.Name)
				continue
			}
			left = append(left, p.Name)
		}
		if !slices.Equal(left, want) {
			return fmt.Errorf("%v are left, want %v", left, want)
		}
		return nil
	})
}

// expectAnnotations waits until a pod has exactly these of the annotations by which it is cordoned.
func expectAnnotations(t *testing.T, o *operator.Operator, pod string, want map[string]string) {
	t.Helper()
	apiserver.Eventually(t, func() error {
		have := operator.Get[corev1.Pod](o, pod).Annotations
		for _, key := range []string{slinkyv1beta1.AnnotationPodCordon, slinkyv1beta1.AnnotationNodeCordoned} {
			if have[key] != want[key] {
				return fmt.Errorf("%s of %s is %q, want %q", key, pod, have[key], want[key])
			}
		}
		return nil
	})
}

func TestTheKubernetesNodeIsCordoned(t *testing.T) {
	t.Parallel()
	o, nodes := workersOn(t, 2, `partition: {enabled: true}`)
	o.ChangeKubeNode(nodes[0], func(n *corev1.Node) { n.Spec.Unschedulable = true })
	expectNode(t, o, "w-0", "IDLE+DRAIN+DYNAMIC_NORM slurm-operator: Node was cordoned")
	expectAnnotations(t, o, "w-0", map[string]string{slinkyv1beta1.AnnotationPodCordon: "true", slinkyv1beta1.AnnotationNodeCordoned: "true"})
	if got := nodeState(o, "w-1"); got != "IDLE+DYNAMIC_NORM " {
		t.Errorf("w-1 is %s", got)
	}
	o.ChangeKubeNode(nodes[0], func(n *corev1.Node) { n.Spec.Unschedulable = false })
	expectNode(t, o, "w-0", "IDLE+DYNAMIC_NORM ")
	expectAnnotations(t, o, "w-0", nil)
	expectWorkers(t, o, names(2)...)
}

func TestACordonedKubernetesNodeSaysWhy(t *testing.T) {
	t.Parallel()
	o, nodes := workersOn(t, 1, `partition: {enabled: true}`)
	o.ChangeKubeNode(nodes[0], func(n *corev1.Node) {
		n.Annotations = map[string]string{slinkyv1beta1.AnnotationNodeCordonReason: "RMA 4711"}
		n.Spec.Unschedulable = true
	})
	expectNode(t, o, "w-0", "IDLE+DRAIN+DYNAMIC_NORM slurm-operator: RMA 4711")
}

func TestAUsersCordonOutlivesThatOfTheKubernetesNode(t *testing.T) {
	t.Parallel()
	o, nodes := workersOn(t, 2, `partition: {enabled: true}`)
	operator.Change(o, "w-1", func(p *corev1.Pod) { p.Annotations[slinkyv1beta1.AnnotationPodCordon] = "true" })
	expectNode(t, o, "w-1", "IDLE+DRAIN+DYNAMIC_NORM slurm-operator: Pod was cordoned")
	o.ChangeKubeNode(nodes[1], func(n *corev1.Node) { n.Spec.Unschedulable = true })
	expectAnnotations(t, o, "w-1", map[string]string{slinkyv1beta1.AnnotationPodCordon: "true", slinkyv1beta1.AnnotationNodeCordoned: "true"})
	o.ChangeKubeNode(nodes[1], func(n *corev1.Node) { n.Spec.Unschedulable = false })
	expectAnnotations(t, o, "w-1", map[string]string{slinkyv1beta1.AnnotationPodCordon: "true"})
	o.Settle()
	if got := nodeState(o, "w-1"); got != "IDLE+DRAIN+DYNAMIC_NORM slurm-operator: Pod was cordoned" {
		t.Errorf("w-1 is %s", got)
	}
}

// expectAttention waits until a pod says that a person has to look at something, with a message that has this in it; an
// empty reason means that there is nothing to look at.
func expectAttention(t *testing.T, o *operator.Operator, pod, reason, message string) {
	t.Helper()
	apiserver.Eventually(t, func() error {
		for _, c := range operator.Get[corev1.Pod](o, pod).Status.Conditions {
			if c.Type == slinkyv1beta1.PodConditionNeedsAttention {
				if c.Reason != reason || !strings.Contains(c.Message, message) {
					return fmt.Errorf("%s: %s", c.Reason, c.Message)
				}
				return nil
			}
		}
		if reason != "" {
			return fmt.Errorf("%s says nothing", pod)
		}
		return nil
	})
}

// expectNothingWritten lets something happen that is no business of the operator's.
func expectNothingWritten(t *testing.T, o *operator.Operator, happens func()) {
	t.Helper()
	o.Settle()
	o.Writes.Reset()
	o.Slurm.ResetCounters()
	happens()
	o.Settle()
	o.Writes.ExpectNone(t)
	if writes := o.Slurm.Writes(); len(writes) > 0 {
		t.Errorf("Slurm is written to: %+v", writes)
	}
}

// replaced waits until a pod is another one than before.
func replaced(t *testing.T, o *operator.Operator, name string, before types.UID) {
	t.Helper()
	apiserver.Eventually(t, func() error {
		if p := operator.Get[corev1.Pod](o, name); p == nil || p.UID == before {
			return fmt.Errorf("%s is not made anew", name)
		}
		return nil
	})
}

func TestThePodIsEvicted(t *testing.T) {
	t.Parallel()
	o, _ := workersOn(t, 2, `partition: {enabled: true}`)
	before := operator.Get[corev1.Pod](o, "w-1").UID
	o.SetPod("w-1", corev1.PodFailed) // what a kubelet under pressure leaves
	expectLeft(t, o, names(2)...)
	replaced(t, o, "w-1", before)
	expectLeft(t, o, names(2)...)
}

func TestTheKubernetesNodeIsTaintedNoSchedule(t *testing.T) {
	t.Parallel()
	o, nodes := workersOn(t, 1, `partition: {enabled: true}`)
	expectNothingWritten(t, o, func() {
		o.ChangeKubeNode(nodes[0], func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "maintenance", Effect: corev1.TaintEffectNoSchedule}}
		})
	})
}

func TestTheKubernetesNodeIsTaintedNoExecute(t *testing.T) {
	t.Parallel()
	o, nodes := workersOn(t, 1, `partition: {enabled: true}`)
	tolerated := map[string]bool{}
	for _, toleration := range operator.Get[corev1.Pod](o, "w-0").Spec.Tolerations {
		tolerated[toleration.Key] = toleration.TolerationSeconds == nil && toleration.Effect == corev1.TaintEffectNoExecute
	}
	for _, key := range []string{slinkyv1beta1.TaintWorker, corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		if !tolerated[key] {
			t.Errorf("a taint %s:NoExecute would end the worker", key)
		}
	}
	// Another taint: Kubernetes deletes the pod, whatever runs in it.
	before := operator.Get[corev1.Pod](o, "w-0").UID
	o.ChangeKubeNode(nodes[0], func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: "out", Effect: corev1.TaintEffectNoExecute}}
	})
	o.Kill("w-0")
	replaced(t, o, "w-0", before)
}

func TestTheKubernetesNodeIsNotReady(t *testing.T) {
	t.Parallel()
	o, nodes := workersOn(t, 2, `partition: {enabled: true}`)
	job := o.Slurm.Submit(fake.Job{NodeList: []string{"w-1"}, CPUs: 1})
	before := operator.Get[corev1.Pod](o, "w-1").UID
	o.SetKubeNodeReady(nodes[1], corev1.ConditionUnknown)
	o.SetReady("w-1", corev1.ConditionFalse) // what the node life cycle controller does
	expectAttention(t, o, "w-1", slinkyv1beta1.ReasonKubernetesNodeNotReady, "delete Node "+nodes[1])
	o.Settle()
	if p := operator.Get[corev1.Pod](o, "w-1"); p == nil || p.UID != before {
		t.Fatal("w-1 is deleted")
	}
	if status, _ := o.Slurm.Job(job); !slices.Contains(status.State, "RUNNING") {
		t.Errorf("the job is %v", status.State)
	}
	o.SetKubeNodeReady(nodes[1], corev1.ConditionTrue)
	o.SetReady("w-1", corev1.ConditionTrue)
	expectAttention(t, o, "w-1", "", "")
	if got := nodeState(o, "w-1"); got != "MIXED+DYNAMIC_NORM " {
		t.Errorf("w-1 is %s", got)
	}
}

func TestTheKubernetesNodeIsLostAndDeleted(t *testing.T) {
	t.Parallel()
	o, nodes := workersOn(t, 1, `partition: {enabled: true}`)
	before := operator.Get[corev1.Pod](o, "w-0").UID
	o.Slurm.Lose("w-0")
	expectStatus(t, o, func(s slinkyv1beta1.NodeSetStatus) bool { return s.SlurmDown == 1 })
	o.DeleteKubeNode(nodes[0])
	o.Settle()
	if p := operator.Get[corev1.Pod](o, "w-0"); p == nil || p.UID != before {
		t.Fatal("w-0 is deleted by us")
	}
	o.Kill("w-0") // what the pod garbage collector does
	replaced(t, o, "w-0", before)
	o.Bind("w-0", o.KubeNode("another"))
	o.RunWorkers()
	expectNode(t, o, "w-0", "IDLE+DYNAMIC_NORM ")
}

func TestTheKubernetesNodeIsRebooted(t *testing.T) {
	t.Parallel()
	o, _ := workersOn(t, 1, `partition: {enabled: true}`)
	before := operator.Get[corev1.Pod](o, "w-0").UID
	o.SetReady("w-0", corev1.ConditionFalse)
	o.Slurm.Lose("w-0")
	expectStatus(t, o, func(s slinkyv1beta1.NodeSetStatus) bool { return s.SlurmDown == 1 })
	o.Settle()
	o.Slurm.Register(fake.Node{Name: "w-0", CPUs: 4})
	o.SetReady("w-0", corev1.ConditionTrue)
	operator.ExpectCondition[slinkyv1beta1.NodeSet](o, "w", "Ready", metav1.ConditionTrue, "Available")
	if p := operator.Get[corev1.Pod](o, "w-0"); p.UID != before {
		t.Error("w-0 is another pod")
	}
}

func TestTheKubernetesNodeIsRenamed(t *testing.T) {
	t.Parallel()
	o, nodes := workersOn(t, 1, `partition: {enabled: true}`)
	o.ChangeKubeNode(nodes[0], func(n *corev1.Node) {
		n.Annotations = map[string]string{slinkyv1beta1.AnnotationTopologySpec: "default:leaf1", slinkyv1beta1.AnnotationFeatures: "a100"}
	})
	expectRecord(t, o, "w-0", nodes[0], "default:leaf1", "k8s/a100")
	before := operator.Get[corev1.Pod](o, "w-0").UID
	o.DeleteKubeNode(nodes[0])
	o.Kill("w-0")
	replaced(t, o, "w-0", before)
	renamed := o.KubeNode("renamed")
	o.ChangeKubeNode(renamed, func(n *corev1.Node) {
		n.Annotations = map[string]string{slinkyv1beta1.AnnotationTopologyLine: "default:leaf2", slinkyv1beta1.AnnotationFeatures: "h100"}
	})
	o.Bind("w-0", renamed)
	o.RunWorkers()
	expectRecord(t, o, "w-0", renamed, "default:leaf2", "k8s/h100")
}

func TestSlurmctldRestartsInTheMiddleOfARetirement(t *testing.T) {
	t.Parallel()
	o, _ := workersOn(t, 2, `partition: {enabled: true}`)
	job := o.Slurm.Submit(fake.Job{NodeList: []string{"w-1"}, CPUs: 1})
	other := o.Slurm.Submit(fake.Job{NodeList: []string{"w-0"}, CPUs: 1, Limit: time.Hour})
	expectStatus(t, o, func(s slinkyv1beta1.NodeSetStatus) bool { return s.SlurmAllocated == 2 })
	scale(o, 0)
	expectNode(t, o, "w-1", "MIXED+DRAIN+DYNAMIC_NORM slurm-operator: Pod was cordoned pending termination")
	o.Slurm.Stop()
	expectWaiting(t, o, "w-1", "Slurm's view of the node is not known: Slurm does not answer")
	o.Restart() // and the operator with it
	o.Settle()
	expectLeft(t, o, names(2)...)
	o.Slurm.Start(true)
	expectWaiting(t, o, "w-1", fmt.Sprintf("waiting for job %d of alice, which has no time limit", job))
	o.Slurm.Finish(job)
	expectLeft(t, o, "w-0")
	o.Slurm.Finish(other)
	expectLeft(t, o)
}

func TestAJobNeverEnds(t *testing.T) {
	t.Parallel()
	o, _ := workersOn(t, 1, `partition: {enabled: true}`)
	job := o.Slurm.Submit(fake.Job{NodeList: []string{"w-0"}, CPUs: 1, User: "alice"})
	expectStatus(t, o, func(s slinkyv1beta1.NodeSetStatus) bool { return s.SlurmAllocated == 1 })
	scale(o, 0)
	expectWaiting(t, o, "w-0", fmt.Sprintf("waiting for job %d of alice, which has no time limit", job))
	if got := operator.Get[corev1.Pod](o, "w-0").Annotations[slinkyv1beta1.AnnotationPodDeadline]; got != "9999-12-31T23:59:59Z" {
		t.Errorf("its deadline is %q", got)
	}
	o.Settle()
	expectLeft(t, o, "w-0")
	operator.Change(o, "w", func(n *slinkyv1beta1.NodeSet) { n.Spec.DrainTimeout = &metav1.Duration{Duration: time.Second} })
	expectLeft(t, o)
}

func TestAnAdministratorDrainedTheNode(t *testing.T) {
	t.Parallel()
	o, _ := workersOn(t, 1, `drainTimeout: 1s`)
	job := o.Slurm.Submit(fake.Job{NodeList: []string{"w-0"}, CPUs: 1})
	if err := o.Slurm.Update("root", "w-0", "DRAIN", "bad disk"); err != nil {
		t.Fatal(err)
	}
	expectStatus(t, o, func(s slinkyv1beta1.NodeSetStatus) bool { return s.SlurmDrain == 1 && s.SlurmAllocated == 1 })
	scale(o, 0)
	expectWaiting(t, o, "w-0", fmt.Sprintf("waiting for job %d of alice, which has no time limit", job))
	o.Settle() // drainTimeout is not for this drain
	expectLeft(t, o, "w-0")
	scale(o, 1)
	o.Settle()
	if got := nodeState(o, "w-0"); got != "MIXED+DRAIN+DYNAMIC_NORM bad disk" {
		t.Errorf("w-0 is %s", got)
	}
	scale(o, 0)
	o.Slurm.Finish(job)
	expectLeft(t, o)
}

func TestTheOperatorIsRestarted(t *testing.T) {
	t.Parallel()
	o, nodes := workersOn(t, 2, `partition: {enabled: true}`)
	o.ChangeKubeNode(nodes[1], func(n *corev1.Node) {
		n.Annotations = map[string]string{slinkyv1beta1.AnnotationTopologySpec: "default:leaf1", slinkyv1beta1.AnnotationFeatures: "a100"}
		n.Spec.Unschedulable = true
	})
	expectRecord(t, o, "w-1", nodes[1], "default:leaf1", "k8s/a100")
	expectNode(t, o, "w-1", "IDLE+DRAIN+DYNAMIC_NORM slurm-operator: Node was cordoned")
	o.Slurm.Submit(fake.Job{NodeList: []string{"w-0"}, CPUs: 1})
	expectStatus(t, o, func(s slinkyv1beta1.NodeSetStatus) bool { return s.SlurmAllocated == 1 && s.SlurmDrain == 1 })
	expectNothingWritten(t, o, o.Restart)
}

func TestAnAnnotationOfTheKubernetesNodeCannotBeRead(t *testing.T) {
	t.Parallel()
	o, nodes := workersOn(t, 1, `partition: {enabled: true}`)
	annotate := func(key, value string) {
		o.ChangeKubeNode(nodes[0], func(n *corev1.Node) { n.Annotations = map[string]string{key: value} })
	}
	annotate(slinkyv1beta1.AnnotationTopologySpec, "rack 7")
	expectAttention(t, o, "w-0", slinkyv1beta1.ReasonInvalidTopology, "of Kubernetes node "+nodes[0])
	annotate(slinkyv1beta1.AnnotationFeatures, "a&b")
	expectAttention(t, o, "w-0", slinkyv1beta1.ReasonInvalidFeatures, "of Kubernetes node "+nodes[0])
	annotate(slinkyv1beta1.AnnotationFeatures, "a100")
	expectAttention(t, o, "w-0", "", "")
	expectRecord(t, o, "w-0", nodes[0], "", "k8s/a100")
}

func TestTheAnnotationOfTheKubernetesNodeIsTakenAway(t *testing.T) {
	t.Parallel()
	o, nodes := workersOn(t, 1, `partition: {enabled: true}`)
	o.ChangeKubeNode(nodes[0], func(n *corev1.Node) {
		n.Annotations = map[string]string{slinkyv1beta1.AnnotationTopologySpec: "default:leaf1", slinkyv1beta1.AnnotationFeatures: "a100"}
	})
	expectRecord(t, o, "w-0", nodes[0], "default:leaf1", "k8s/a100")
	o.ChangeKubeNode(nodes[0], func(n *corev1.Node) { n.Annotations = nil })
	apiserver.Eventually(t, func() error {
		status, _ := o.Slurm.Node("w-0")
		if says := operator.Get[corev1.Pod](o, "w-0").Annotations[slinkyv1beta1.AnnotationTopologySpec]; status.Topology != "" || says != "" {
			return fmt.Errorf("the topology is %q, and the pod says %q", status.Topology, says)
		}
		if slices.Contains(status.Features, "k8s/a100") || slices.Contains(status.ActiveFeatures, "k8s/a100") {
			return fmt.Errorf("the features are %v, active %v", status.Features, status.ActiveFeatures)
		}
		return nil
	})
	expectNothingWritten(t, o, o.Restart)
}

func TestWhatSlurmctldForgotIsNotDeleted(t *testing.T) {
	t.Parallel()
	o, _ := workersOn(t, 3, `partition: {enabled: true}`)
	for _, name := range names(3) { // they should have registered long ago
		o.SetReadySince(name, time.Now().Add(-time.Hour))
	}
	o.Slurm.Stop()
	o.Slurm.Start(false)
	o.Restart() // the one that starts knows nothing of the nodes that there were
	// It believes in an absence of two minutes that it has seen itself.
	err := wait.PollUntilContextTimeout(t.Context(), time.Second, 3*time.Minute, false, func(context.Context) (bool, error) {
		return meta.IsStatusConditionTrue(operator.Get[slinkyv1beta1.NodeSet](o, "w").Status.Conditions, slinkyv1beta1.ConditionWorkersUnknown), nil
	})
	if err != nil {
		t.Fatalf("waiting for condition WorkersUnknown: %v", err)
	}
	operator.ExpectCondition[slinkyv1beta1.NodeSet](o, "w", slinkyv1beta1.ConditionWorkersUnknown, metav1.ConditionTrue, slinkyv1beta1.ReasonStateLost)
	operator.ExpectCondition[slinkyv1beta1.NodeSet](o, "w", "Ready", metav1.ConditionFalse, slinkyv1beta1.ReasonWorkersUnknown)
	scale(o, 0)
	apiserver.Eventually(t, func() error {
		for _, c := range operator.Get[corev1.Pod](o, "w-2").Status.Conditions {
			if c.Type == "coxswain.dev/Retiring" && strings.HasPrefix(c.Message, "not registered in Slurm, which seems to have lost its state") {
				return nil
			}
		}
		return fmt.Errorf("w-2 says %+v", operator.Get[corev1.Pod](o, "w-2").Status.Conditions)
	})
	scale(o, 3)
	// Somebody deletes two of them, and these register; the third may still run what Slurm has forgotten.
	for _, name := range names(2) {
		o.Kill(name)
	}
	expectWorkers(t, o, names(3)...)
	for _, name := range names(2) {
		o.Slurm.Register(fake.Node{Name: name, CPUs: 4})
	}
	o.Settle()
	operator.ExpectCondition[slinkyv1beta1.NodeSet](o, "w", slinkyv1beta1.ConditionWorkersUnknown, metav1.ConditionTrue, slinkyv1beta1.ReasonStateLost)
	if p := operator.Get[corev1.Pod](o, "w-2"); p.DeletionTimestamp != nil || p.Annotations["coxswain.dev/retired"] != "" {
		t.Errorf("w-2 goes: %+v", p.ObjectMeta)
	}
	o.Slurm.Register(fake.Node{Name: "w-2", CPUs: 4})
	operator.ExpectCondition[slinkyv1beta1.NodeSet](o, "w", slinkyv1beta1.ConditionWorkersUnknown, metav1.ConditionFalse, slinkyv1beta1.ReasonWorkersKnown)
}

func TestSlurmRefusesTheRecordOfANode(t *testing.T) {
	t.Parallel()
	o, nodes := workersOn(t, 1, `partition: {enabled: true}`)
	o.Slurm.SetFault(func(r *http.Request) *fake.Fault {
		if r.Method == http.MethodPost {
			return &fake.Fault{Error: &fake.Error{Number: 2180, Text: "Invalid topology"}}
		}
		return nil
	})
	o.ChangeKubeNode(nodes[0], func(n *corev1.Node) {
		n.Annotations = map[string]string{slinkyv1beta1.AnnotationTopologySpec: "default:leaf1"}
	})
	expectAttention(t, o, "w-0", slinkyv1beta1.ReasonRecordRefused, "Invalid topology")
	expectNothingWritten(t, o, func() {})
}

// expectRecord waits until Slurm has on a node what follows from its pod and its Kubernetes node.
func expectRecord(t *testing.T, o *operator.Operator, name, kubeNode, topology, feature string) {
	t.Helper()
	apiserver.Eventually(t, func() error {
		status, _ := o.Slurm.Node(name)
		comment, _ := node.ParseComment(status.Comment)
		want := node.Comment{
			Namespace: o.Namespace, PodName: name, Node: kubeNode, NodeSetName: "w",
			NodeSetUID:   string(operator.Get[slinkyv1beta1.NodeSet](o, "w").UID),
			Registration: renderworker.Registration(operator.Get[corev1.Pod](o, name)),
		}
		switch {
		case comment != want:
			return fmt.Errorf("the comment is %q", status.Comment)
		case status.Topology != topology:
			return fmt.Errorf("the topology is %q", status.Topology)
		case !slices.Contains(status.Features, feature) || !slices.Contains(status.ActiveFeatures, feature):
			return fmt.Errorf("the features are %v, active %v", status.Features, status.ActiveFeatures)
		case topology != "" && operator.Get[corev1.Pod](o, name).Annotations[slinkyv1beta1.AnnotationTopologySpec] != topology:
			return fmt.Errorf("the pod says %v", operator.Get[corev1.Pod](o, name).Annotations)
		}
		return nil
	})
}

func TestAJobThatStartsAtTheLastMomentIsNotKilled(t *testing.T) {
	t.Parallel()
	o, _ := workersOn(t, 1, `partition: {enabled: true}`)
	var drained atomic.Bool
	var job atomic.Int64
	o.Slurm.SetFault(func(r *http.Request) *fake.Fault {
		switch status, _ := o.Slurm.Node("w-0"); {
		case r.Method != http.MethodGet || !slices.Contains(status.State, "DRAIN"):
		case !drained.Swap(true): // Slurm says for the first time that it is drained
		case job.Load() == 0: // and before it says so once more, somebody lets a job run there
			if err := o.Slurm.Update("root", "w-0", "UNDRAIN", ""); err != nil {
				t.Error(err)
			}
			job.Store(o.Slurm.Submit(fake.Job{NodeList: []string{"w-0"}, CPUs: 1}))
		}
		return nil
	})
	scale(o, 0)
	apiserver.Eventually(t, func() error {
		if job.Load() == 0 {
			return fmt.Errorf("there is no job yet")
		}
		return nil
	})
	o.Settle()
	expectLeft(t, o, "w-0")
	if status, _ := o.Slurm.Job(job.Load()); !slices.Contains(status.State, "RUNNING") {
		t.Fatalf("the job is %v", status.State)
	}
	o.Slurm.Finish(job.Load())
	expectLeft(t, o)
}

func TestDeletionsAreBounded(t *testing.T) {
	t.Parallel()
	o, _ := workersOn(t, 3, `partition: {enabled: true}`)
	o.Budget = 1
	o.Restart()
	scale(o, 0)
	apiserver.Eventually(t, func() error {
		for _, c := range operator.Get[slinkyv1beta1.NodeSet](o, "w").Status.Conditions {
			if c.Type == "Ready" && strings.Contains(c.Message, "retired (scale-in) and drained; waiting, because this cluster has seen as many deletions within a minute as it may") {
				return nil
			}
		}
		return fmt.Errorf("nobody waits: %+v", operator.Get[slinkyv1beta1.NodeSet](o, "w").Status.Conditions)
	})
	o.Settle()
	left := slices.DeleteFunc(o.Workers(), func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
	if len(left) != 2 {
		t.Errorf("%d workers are left of 3 when one may go", len(left))
	}
}

func TestTheWorkersOfANodeSetThatAreToBeKeptAreNotDrained(t *testing.T) {
	t.Parallel()
	o, _ := workersOn(t, 2, `partition: {enabled: true}`)
	set := operator.Get[slinkyv1beta1.NodeSet](o, "w")
	if err := o.User.Delete(t.Context(), set, client.PropagationPolicy(metav1.DeletePropagationOrphan)); err != nil {
		t.Fatal(err)
	}
	apiserver.Eventually(t, func() error {
		if n := operator.Get[slinkyv1beta1.NodeSet](o, "w"); n == nil || !slices.Equal(n.Finalizers, []string{metav1.FinalizerOrphanDependents}) {
			return fmt.Errorf("the NodeSet is %+v", n)
		}
		return nil
	})
	o.Settle()
	expectLeft(t, o, names(2)...)
	for _, name := range names(2) {
		if got := nodeState(o, name); got != "IDLE+DYNAMIC_NORM " {
			t.Errorf("%s is %s", name, got)
		}
	}
	operator.Change(o, "w", func(n *slinkyv1beta1.NodeSet) { n.Finalizers = nil })
}

func TestTheWorkersOfANodeSetThatIsBeingDeletedAreDrained(t *testing.T) {
	t.Parallel()
	o, _ := workersOn(t, 2, `partition: {enabled: true}`)
	const finalizer = "example.com/keep"
	operator.Change(o, "w", func(n *slinkyv1beta1.NodeSet) { n.Finalizers = append(n.Finalizers, finalizer) })
	job := o.Slurm.Submit(fake.Job{NodeList: []string{"w-0"}, CPUs: 1})
	expectStatus(t, o, func(s slinkyv1beta1.NodeSetStatus) bool { return s.SlurmAllocated == 1 })
	operator.Delete[slinkyv1beta1.NodeSet](o, "w")
	expectLeft(t, o, "w-0")
	expectNode(t, o, "w-0", "MIXED+DRAIN+DYNAMIC_NORM slurm-operator: Pod was cordoned pending termination")
	o.Slurm.Finish(job)
	expectLeft(t, o)
	operator.Change(o, "w", func(n *slinkyv1beta1.NodeSet) {
		n.Finalizers = slices.DeleteFunc(n.Finalizers, func(f string) bool { return f == finalizer })
	})
}
