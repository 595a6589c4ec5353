// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeconfigurator

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	"github.com/coxswain-hpc/coxswain/internal/controller/rebooter/rebooterplan"
	"github.com/coxswain-hpc/coxswain/internal/operator"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
)

const (
	yes = corev1.ConditionTrue
	no  = corev1.ConditionFalse
)

// quiet waits until the rebooter has written nothing for a second.
func (s *scene) quiet() {
	s.t.Helper()
	deadline := time.Now().Add(time.Minute)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	// Looks are counted and not seconds, so that a process that gets no time to run waits longer.
	for last, still := len(s.Writes.All()), 0; still < 75; still++ {
		<-tick.C
		if n := len(s.Writes.All()); n != last {
			last, still = n, 0
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("the rebooter does not come to rest: %v", s.Writes.All()[max(0, len(s.Writes.All())-5):])
		}
	}
}

// back returns what is wrong with a node that should be in service again.
func back(n rebooterplan.Node) string {
	if n.Drain.Status != no || n.Drain.Reason != nebiusv1alpha1.ReasonNodeUndrained || n.Tainted || n.Marks != (rebooterplan.Marks{}) {
		return "the node is not back"
	}
	return ""
}

func TestANodeIsDrainedRebootedAndComesBack(t *testing.T) {
	s := start(t)
	s.pod("web", nil)
	s.budget("web")
	s.pod("batch", nil)
	s.pod("agent", func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent", UID: "u", Controller: new(true)}}
	})
	s.pod("tolerant", func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}} })
	s.ask(nebiusv1alpha1.ConditionSlurmNodeReboot, yes, "NodeNeedReboot")

	// The budget blocks, and the node shows it with the names of pod and budget.
	s.expectEvicted("batch")
	blocked := func(n rebooterplan.Node) string {
		if !n.Cordoned || n.Tainted || n.Drain.Reason != nebiusv1alpha1.ReasonNodeDraining || !strings.Contains(n.Drain.Message, s.Namespace+"/web: The disruption budget web needs 1 healthy pods") {
			return "the node does not tell what blocks"
		}
		return ""
	}
	s.expect(blocked)
	s.end("batch")
	s.restart("boot-1")
	s.quiet()
	s.expect(blocked)
	s.expectReboots(0)

	// The rebooter gets no event when the budget changes: it tries again.
	s.allow("web", 1)
	s.expectEvicted("web")
	s.restart("boot-1")
	s.quiet()
	s.expectReboots(0)
	s.end("web")
	s.expect(func(n rebooterplan.Node) string {
		if !n.Cordoned || !n.Tainted || n.Drain.Reason != nebiusv1alpha1.ReasonNodeDrained || n.Reboot.Reason != nebiusv1alpha1.ReasonNodeRebooting {
			return "the node does not reboot"
		}
		return ""
	})
	s.awaitReboot()
	s.quiet()
	s.expectReboots(1)

	s.restart("boot-2")
	s.expect(func(n rebooterplan.Node) string {
		if n.Reboot.Reason != nebiusv1alpha1.ReasonNodeRebooted || n.Cordoned {
			return "the reboot is not told"
		}
		return back(n)
	})
	for _, stays := range []string{"agent", "tolerant"} {
		var p corev1.Pod
		if err := s.user.Get(t.Context(), client.ObjectKey{Namespace: s.Namespace, Name: stays}, &p); err != nil || p.DeletionTimestamp != nil {
			t.Errorf("Pod %s did not stay: %v", stays, err)
		}
	}
	s.expectReboots(1)

	// At rest nothing is written, whatever the kubelet writes.
	s.quiet()
	s.Writes.Reset()
	s.restart("boot-2")
	s.ask("Ready", yes, "KubeletReady")
	s.quiet()
	s.Writes.ExpectNone(t)
}

func TestTheCordonOfAnAdministratorStays(t *testing.T) {
	s := start(t)
	s.cordon(true)
	s.ask(nebiusv1alpha1.ConditionSlurmNodeDrain, yes, "NodeNeedDrain")
	drained := func(n rebooterplan.Node) string {
		if n.Drain.Reason != nebiusv1alpha1.ReasonNodeDrained || !n.Tainted {
			return "the node is not drained"
		}
		return ""
	}
	s.expect(drained)
	s.ask(nebiusv1alpha1.ConditionSlurmNodeDrain, no, nebiusv1alpha1.ReasonNodeRebooted)
	released := func(n rebooterplan.Node) string {
		if n.Tainted || n.Marks != (rebooterplan.Marks{}) {
			return "the rebooter has not taken away what it did"
		}
		return ""
	}
	s.expect(released)
	s.quiet()
	if !s.get().Spec.Unschedulable {
		t.Error("a cordon that was there before is gone")
	}

	// The rebooter cordons. While none runs, an administrator lets the node back and cordons it again.
	s.cordon(false)
	s.ask(nebiusv1alpha1.ConditionSlurmNodeDrain, yes, "NodeNeedDrain")
	s.expect(drained)
	s.stop()
	s.cordon(false)
	s.cordon(true)
	s.ask(nebiusv1alpha1.ConditionSlurmNodeDrain, no, nebiusv1alpha1.ReasonNodeRebooted)
	s.run()
	s.expect(released)
	s.quiet()
	if !s.get().Spec.Unschedulable {
		t.Error("a cordon that came later is gone")
	}

	// What the rebooter has cordoned, it uncordons.
	s.cordon(false)
	s.ask(nebiusv1alpha1.ConditionSlurmNodeDrain, yes, "NodeNeedDrain")
	s.expect(drained)
	s.ask(nebiusv1alpha1.ConditionSlurmNodeDrain, no, nebiusv1alpha1.ReasonNodeRebooted)
	s.expect(func(n rebooterplan.Node) string {
		if n.Cordoned {
			return "the node is cordoned"
		}
		return released(n)
	})
	s.expectReboots(0)
}

func TestARebooterMayChangeItsOwnNodeOnly(t *testing.T) {
	s := start(t)
	s.stop()
	other := s.node + "-other"
	s.makeNode(other)
	c, err := client.New(s.config(), client.Options{Scheme: operator.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	change := func(name string, status bool, edit func(n *corev1.Node)) error {
		n := &corev1.Node{}
		if err := c.Get(t.Context(), client.ObjectKey{Name: name}, n); err != nil {
			t.Fatal(err)
		}
		before := n.DeepCopy()
		edit(n)
		if status {
			return c.Status().Patch(t.Context(), n, client.StrategicMergeFrom(before))
		}
		return c.Patch(t.Context(), n, client.StrategicMergeFrom(before))
	}
	cordon := func(n *corev1.Node) { n.Spec.Unschedulable = !n.Spec.Unschedulable }
	condition := func(kind corev1.NodeConditionType) func(n *corev1.Node) {
		return func(n *corev1.Node) {
			n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: kind, Status: yes, LastHeartbeatTime: metav1.Now()})
		}
	}
	// The API server takes a while to apply a new policy.
	apiserver.Eventually(t, func() error {
		if err := change(other, false, cordon); !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) {
			return fmt.Errorf("another node is cordoned: %w", err)
		}
		return nil
	})
	for _, tt := range []struct {
		name, node string
		status     bool
		edit       func(n *corev1.Node)
		refusal    string
	}{
		{"the rebooter cordons its own node", s.node, false, cordon, ""},
		{"the rebooter may not cordon another node", other, false, cordon, "and no other"},
		{"the rebooter sets a condition of its own", s.node, true, condition(nebiusv1alpha1.ConditionSlurmNodeDrain), ""},
		{"the rebooter may not set a condition of another node", other, true, condition(nebiusv1alpha1.ConditionSlurmNodeDrain), "and no other"},
		{"the rebooter may not set a condition of the kubelet", s.node, true, condition(corev1.NodeReady), "and no others"},
		{"the rebooter may not change a label", s.node, false, func(n *corev1.Node) { n.Labels["a"] = "c" }, "may not change the labels"},
		{"the rebooter may not change a label through the status", s.node, true, func(n *corev1.Node) { n.Labels["a"] = "c" }, "may not change the labels"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := change(tt.node, tt.status, tt.edit)
			if (err == nil) != (tt.refusal == "") || err != nil && !strings.Contains(err.Error(), tt.refusal) {
				t.Errorf("the answer is %v, want %q", err, tt.refusal)
			}
		})
	}
	var secrets corev1.SecretList
	if err := c.List(t.Context(), &secrets); !apierrors.IsForbidden(err) {
		t.Errorf("it may read Secrets: %v", err)
	}
	if err := c.Delete(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.node}}); !apierrors.IsForbidden(err) {
		t.Errorf("it may delete a Node: %v", err)
	}
}
