// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetesnode

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/coxswain-hpc/coxswain/internal/health"
	coxswain "github.com/coxswain-hpc/coxswain/internal/operator"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

// set gives a Node a condition.
func set(n *corev1.Node, kind corev1.NodeConditionType, status corev1.ConditionStatus, reason string) {
	for i := range n.Status.Conditions {
		if c := &n.Status.Conditions[i]; c.Type == kind {
			c.Status, c.Reason = status, reason
			return
		}
	}
	n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: kind, Status: status, Reason: reason})
}

// TestTheOperatorMayChangeItsConditionsOfNodesOnly is about an operator that an attacker has taken over, or that has a bug: what the policy
// of the chart lets pass with its account. The account has every right here, since RBAC refuses some of it as well.
func TestTheOperatorMayChangeItsConditionsOfNodesOnly(t *testing.T) {
	o := operator.Start(t, "token")
	grant(t, o, "kubernetes-nodes")
	config := rest.CopyConfig(o.Config) // what is tried here is no use of the operator's
	config.Impersonate = o.AsOperator(t).Impersonate
	config.Impersonate.Groups = append(config.Impersonate.Groups, "system:masters")
	c, err := client.New(config, client.Options{Scheme: coxswain.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	nodes := 0
	// makeNode makes a Node as its kubelet and the cloud have it.
	makeNode := func(edit func(*corev1.Node)) *corev1.Node {
		t.Helper()
		nodes++
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("limits-%s-%d", o.Namespace, nodes), Labels: map[string]string{"a": "b"}}}
		if err := o.User.Create(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = o.User.Delete(context.Background(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name}})
		})
		n.Status.Capacity = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}
		n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}}
		set(n, corev1.NodeReady, corev1.ConditionTrue, "KubeletReady")
		if edit != nil {
			edit(n)
		}
		if err := o.User.Status().Update(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	patch := func(status bool, edit func(*corev1.Node)) func(*corev1.Node) error {
		return func(n *corev1.Node) error {
			before := n.DeepCopy()
			edit(n)
			if status {
				return c.Status().Patch(t.Context(), n, client.StrategicMergeFrom(before))
			}
			return c.Patch(t.Context(), n, client.StrategicMergeFrom(before))
		}
	}
	remove := func(n *corev1.Node) error { return c.Delete(t.Context(), n) }
	says := func(kind corev1.NodeConditionType, reason string) func(*corev1.Node) {
		return func(n *corev1.Node) { set(n, kind, corev1.ConditionTrue, reason) }
	}
	both := func(edits ...func(*corev1.Node)) func(*corev1.Node) {
		return func(n *corev1.Node) {
			for _, edit := range edits {
				edit(n)
			}
		}
	}
	notReady := func(n *corev1.Node) { set(n, corev1.NodeReady, corev1.ConditionUnknown, "NodeStatusUnknown") }
	const nothing, metadata, others, status, deletion = "and nothing else", "may not change the metadata", "and no others", "nothing else of its status", "may delete a Node that"
	// The API server takes a while to apply a new policy.
	apiserver.Eventually(t, func() error {
		if err := patch(false, func(n *corev1.Node) { n.Spec.Unschedulable = true })(makeNode(nil)); !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) {
			return fmt.Errorf("a node is cordoned: %w", err)
		}
		return nil
	})
	for _, tt := range []struct {
		name    string
		node    func(*corev1.Node)
		do      func(*corev1.Node) error
		refusal string
	}{
		{"the machine is to be rebooted", nil, patch(true, both(says(health.NodeDegraded, "a"), says(health.NodeReboot, "b"))), ""},
		{"the machine is to be replaced", nil, patch(true, both(says(health.NodeMaintenance, "a"), says(health.NodeDrain, "b"))), ""},
		{"the machine is not ready, or its hardware is suspected", nil, patch(true, both(says(health.NodeNotReady, "a"), says(health.HardwareIssuesSuspected, "b"))), ""},
		{"a condition of the kubelet", nil, patch(true, notReady), others},
		{"a condition of somebody else", nil, patch(true, says("DiskOnFire", "a")), others},
		{"a label through the status", nil, patch(true, func(n *corev1.Node) { n.Labels["a"] = "c" }), metadata},
		{"an annotation through the status", nil, patch(true, func(n *corev1.Node) { n.Annotations = map[string]string{"a": "c"} }), metadata},
		{"how much the machine has", nil, patch(true, func(n *corev1.Node) { n.Status.Capacity[corev1.ResourceCPU] = resource.MustParse("1") }), status},
		{"the address of the machine", nil, patch(true, func(n *corev1.Node) { n.Status.Addresses[0].Address = "10.0.0.9" }), status},
		{"a cordon", nil, patch(false, func(n *corev1.Node) { n.Spec.Unschedulable = true }), nothing},
		{"a taint", nil, patch(false, func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoExecute}}
		}), nothing},
		{"a Node of its own making", nil, func(*corev1.Node) error {
			return c.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "made-" + o.Namespace}})
		}, nothing},
		{"a Node in service goes", nil, remove, deletion},
		{"a Node goes that is drained for nothing", says(health.NodeDrain, health.ReasonNodeDrained), remove, deletion},
		{"a Node goes whose pods are not evicted", both(says(health.NodeMaintenance, "a"), says(health.NodeDrain, "NodeDraining")), remove, deletion},
		{"a Node goes that is drained for a maintenance", both(says(health.NodeMaintenance, "a"), says(health.NodeDrain, health.ReasonNodeDrained)), remove, ""},
		{"a Node goes that is ready again", says(health.NodeNotReady, "a"), remove, deletion},
		{"a Node goes that nobody has marked", notReady, remove, deletion},
		{"a Node goes that has not been ready for long", both(says(health.NodeNotReady, "a"), notReady), remove, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.do(makeNode(tt.node))
			if (err == nil) != (tt.refusal == "") || err != nil && !strings.Contains(err.Error(), tt.refusal) {
				t.Errorf("the answer is %v, want %q", err, tt.refusal)
			}
		})
	}
}
