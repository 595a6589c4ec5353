// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"fmt"
	"math"
	"net/http"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

// The tests of this file are those of docs/decisions/009.

// evict asks the API server to evict a worker, and reports whether it does.
func evict(t *testing.T, o *operator.Operator, pod string) bool {
	t.Helper()
	clientset, err := kubernetes.NewForConfig(o.Config)
	if err != nil {
		t.Fatal(err)
	}
	// Without MaxRetries a client asks ten times more, ten seconds apart, before it reports that it was refused.
	err = clientset.CoreV1().RESTClient().Post().Namespace(o.Namespace).Resource("pods").Name(pod).SubResource("eviction").
		Body(&policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: pod}}).MaxRetries(0).Do(t.Context()).Error()
	if err != nil && !apierrors.IsTooManyRequests(err) {
		t.Fatalf("evicting %s: %v", pod, err)
	}
	return err == nil
}

func protected(o *operator.Operator, pod string) bool {
	p, err := operator.Find[corev1.Pod](o, pod)
	return err == nil && p.Labels[slinkyv1beta1.LabelPodProtect] == "true"
}

// expectProtection waits until the first worker is protected, or is not.
func expectProtection(t *testing.T, o *operator.Operator, pod string, want bool) {
	t.Helper()
	apiserver.Eventually(t, func() error {
		if got := protected(o, pod); got != want {
			return fmt.Errorf("%s is protected: %t", pod, got)
		}
		return nil
	})
}

func TestWorkersAreNotEvictedUntilTheyAreDrained(t *testing.T) {
	t.Parallel()
	o, nodes := operator.StartWorkersOn(t, 2, `partition: {enabled: true}`)
	job := o.Slurm.Submit(fake.Job{NodeList: []string{"w-1"}, CPUs: 1})
	expectProtection(t, o, "w-0", true)
	expectProtection(t, o, "w-1", true)
	operator.ExpectExists[policyv1.PodDisruptionBudget](o, "slurm-workers-pdb-demo")
	for _, name := range operator.WorkerNames(2) {
		if evict(t, o, name) {
			t.Fatalf("%s is evicted, and was not drained", name)
		}
	}
	// What kubectl drain does: it cordons, and keeps trying.
	for _, node := range nodes {
		o.ChangeKubeNode(node, func(n *corev1.Node) { n.Spec.Unschedulable = true })
	}
	apiserver.Eventually(t, func() error {
		if !evict(t, o, "w-0") {
			return fmt.Errorf("w-0 is not evicted")
		}
		return nil
	})
	if got := o.NodeState("w-0"); got != "IDLE+DRAIN+DYNAMIC_NORM slurm-operator: Node was cordoned" {
		t.Errorf("w-0 was evicted as %s", got)
	}
	o.ExpectNode("w-1", "MIXED+DRAIN+DYNAMIC_NORM slurm-operator: Node was cordoned")
	o.Settle()
	if evict(t, o, "w-1") {
		t.Fatal("w-1 is evicted while its job runs")
	}
	o.Slurm.Finish(job)
	apiserver.Eventually(t, func() error {
		if !evict(t, o, "w-1") {
			return fmt.Errorf("w-1 is not evicted")
		}
		return nil
	})
}

func TestAWorkerIsProtectedBeforeItIsUsedAgain(t *testing.T) {
	t.Parallel()
	o, nodes := operator.StartWorkersOn(t, 1, `partition: {enabled: true}`)
	expectProtection(t, o, "w-0", true)
	o.ChangeKubeNode(nodes[0], func(n *corev1.Node) { n.Spec.Unschedulable = true })
	o.ExpectNode("w-0", "IDLE+DRAIN+DYNAMIC_NORM slurm-operator: Node was cordoned")
	expectProtection(t, o, "w-0", false)
	o.Settle() // what Slurm is told from here on is that the drain ends
	var late atomic.Bool
	o.Slurm.SetFault(func(r *http.Request) *fake.Fault {
		if r.Method == http.MethodPost && !protected(o, "w-0") {
			late.Store(true)
		}
		return nil
	})
	o.ChangeKubeNode(nodes[0], func(n *corev1.Node) { n.Spec.Unschedulable = false })
	o.ExpectNode("w-0", "IDLE+DYNAMIC_NORM ")
	if late.Load() {
		t.Error("w-0 was undrained before it was protected")
	}
	o.ExpectNothingWritten(func() {})
}

func TestAWorkerThatIsNotToBeProtectedIsUsedAgainAllTheSame(t *testing.T) {
	t.Parallel()
	o, nodes := operator.StartWorkersOn(t, 1, `partition: {enabled: true}, workloadDisruptionProtection: false`)
	expectProtection(t, o, "w-0", false)
	o.ChangeKubeNode(nodes[0], func(n *corev1.Node) { n.Spec.Unschedulable = true })
	o.ExpectNode("w-0", "IDLE+DRAIN+DYNAMIC_NORM slurm-operator: Node was cordoned")
	o.ChangeKubeNode(nodes[0], func(n *corev1.Node) { n.Spec.Unschedulable = false })
	o.ExpectNode("w-0", "IDLE+DYNAMIC_NORM ")
}

func TestWhoProtectsWhat(t *testing.T) {
	t.Parallel()
	o, _ := operator.StartWorkersOn(t, 1, `partition: {enabled: true}`)
	expectProtection(t, o, "w-0", true)
	operator.Change(o, "w", func(n *slinkyv1beta1.NodeSet) {
		n.Annotations = map[string]string{slinkyv1beta1.AnnotationEvictIdle: "true"}
	})
	expectProtection(t, o, "w-0", false)
	job := o.Slurm.Submit(fake.Job{NodeList: []string{"w-0"}, CPUs: 1})
	expectProtection(t, o, "w-0", true)
	o.Slurm.Finish(job)
	expectProtection(t, o, "w-0", false)
	operator.Change(o, "w", func(n *slinkyv1beta1.NodeSet) { n.Annotations = nil })
	expectProtection(t, o, "w-0", true)
	operator.Change(o, "w", func(n *slinkyv1beta1.NodeSet) { n.Spec.WorkloadDisruptionProtection = new(false) })
	expectProtection(t, o, "w-0", false)
	operator.Change(o, "w", func(n *slinkyv1beta1.NodeSet) { n.Spec.WorkloadDisruptionProtection = new(true) })
	expectProtection(t, o, "w-0", true)

	// It could not be known when a new one is free.
	operator.Delete[slinkyv1beta1.RestApi](o, "demo")
	expectWaitingLink(t, o)
	o.Scale(2)
	o.ExpectWorkers(operator.WorkerNames(2)...)
	o.Settle()
	if protected(o, "w-1") || !protected(o, "w-0") {
		t.Errorf("without a RestApi w-0, which was protected, is: %t; w-1, which is new, is: %t", protected(o, "w-0"), protected(o, "w-1"))
	}
	// With one it may be used, and it is open when Slurm answers for the first time.
	o.Slurm.SetFault(func(*http.Request) *fake.Fault { return &fake.Fault{Cut: true} })
	operator.Create[slinkyv1beta1.RestApi](o, operator.ARestAPI)
	expectProtection(t, o, "w-1", true)
	if message := operator.ExpectCondition[slinkyv1beta1.Controller](o, "demo", slinkyv1beta1.ConditionSlurmReachable, "Unknown", slinkyv1beta1.ReasonConnecting); message == "" {
		t.Error("SlurmReachable says nothing")
	}
}

// expectWaitingLink waits until the operator has no Slurm cache any more.
func expectWaitingLink(t *testing.T, o *operator.Operator) {
	t.Helper()
	operator.ExpectCondition[slinkyv1beta1.Controller](o, "demo", slinkyv1beta1.ConditionSlurmReachable, "False", slinkyv1beta1.ReasonNoRestAPI)
}

func TestTheBudgetOfAnEarlierReleaseIsReplaced(t *testing.T) {
	t.Parallel()
	o := operator.Start(t)
	operator.Create[policyv1.PodDisruptionBudget](o, `{metadata: {name: slurm-workers-pdb-demo, labels: {
		app.kubernetes.io/component: worker, app.kubernetes.io/managed-by: coxswain, app.kubernetes.io/name: slurmd, slinky.slurm.net/cluster: demo}},
		spec: {maxUnavailable: 0, selector: {matchLabels: {nodeset.slinky.slurm.net/pod-protect: "true"}}}}`)
	operator.Create[slinkyv1beta1.Controller](o, `{metadata: {name: demo}, spec: {}}`)
	operator.Create[slinkyv1beta1.NodeSet](o, `{metadata: {name: w}, spec: {controllerRef: {name: demo}, replicas: 1}}`)
	apiserver.Eventually(t, func() error {
		b := operator.Get[policyv1.PodDisruptionBudget](o, "slurm-workers-pdb-demo")
		if b.Spec.MaxUnavailable != nil || b.Spec.MinAvailable == nil || *b.Spec.MinAvailable != intstr.FromInt32(math.MaxInt32) {
			return fmt.Errorf("the budget is %+v", b)
		}
		return nil
	})
	o.ExpectNothingWritten(o.Restart)
}

func TestAWorkerInTheNetworkOfItsNodeHasItsName(t *testing.T) {
	t.Parallel()
	o := operator.Start(t)
	operator.Create[slinkyv1beta1.Controller](o, `{metadata: {name: demo}, spec: {}}`)
	operator.Create[slinkyv1beta1.NodeSet](o, `{metadata: {name: w}, spec: {controllerRef: {name: demo}, replicas: 1, template: {spec: {hostNetwork: true}}}}`)
	o.ExpectWorkers("w-0")
	node := o.KubeNode("node-0")
	o.Bind("w-0", node)
	apiserver.Eventually(t, func() error {
		if got := operator.Get[corev1.Pod](o, "w-0").Labels[slinkyv1beta1.LabelPodHostname]; got != node {
			return fmt.Errorf("its label says %q", got)
		}
		return nil
	})
	o.ExpectNothingWritten(o.Restart)
}
