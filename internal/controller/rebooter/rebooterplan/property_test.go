// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package rebooterplan

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
)

// machine is a Kubernetes node in a random world.
type machine struct {
	t    *rapid.T
	now  time.Time
	boot int
	node *corev1.Node
	pods []Pod
	made int
	// blocked are the pods that a budget protects.
	blocked map[types.UID]bool
	// cordon and taint are an administrator's own.
	cordon, taint bool
	// memory is what a process of the rebooter remembers.
	evictions map[types.UID]Attempt
	reboot    Attempt
}

func (m *machine) facts() Facts {
	return Facts{Now: m.now, Boot: fmt.Sprint("boot-", m.boot), Node: NodeOf(m.node), Pods: m.pods, Evictions: m.evictions, Reboot: m.reboot}
}

// forget starts the rebooter anew.
func (m *machine) forget() { m.evictions, m.reboot = map[types.UID]Attempt{}, Attempt{} }

// restart is a reboot of the machine.
func (m *machine) restart() {
	m.boot++
	m.forget()
}

// step has the rebooter do one thing, and reports whether it did any.
func (m *machine) step() bool {
	n := Decide(m.facts())
	before := m.node.DeepCopy()
	Write(m.node, n, m.now)
	m.holds(before, n)
	switch n.Action {
	case Wait:
		return false
	case Evict:
		for _, p := range n.Evict {
			refused := ""
			if m.blocked[p.UID] {
				refused = "blocked"
			} else {
				m.pods[m.at(p.UID)].Leaving = true
			}
			m.evictions[p.UID] = m.evictions[p.UID].Next(m.now, refused)
		}
	case Reboot:
		m.reboot = m.reboot.Rebooting(m.now)
		if rapid.Bool().Draw(m.t, "goes down at once") {
			m.restart()
		}
	case Cordon:
		m.cordonedBy(FieldManager)
	case Tell, SetTaint, Release:
	}
	return true
}

// cordonedBy sets what the API server records about the last change of spec.unschedulable.
func (m *machine) cordonedBy(manager string) {
	m.node.ManagedFields = nil
	if manager != "" {
		m.node.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: manager, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:unschedulable":{}}}`)}}
	}
}

func (m *machine) at(uid types.UID) int {
	return slices.IndexFunc(m.pods, func(p Pod) bool { return p.UID == uid })
}

// holds is what no step may break.
func (m *machine) holds(before *corev1.Node, n Next) {
	if m.cordon && !m.node.Spec.Unschedulable {
		m.t.Fatalf("the cordon of an administrator is gone: %+v", n)
	}
	if m.taint && !NodeOf(m.node).Tainted {
		m.t.Fatalf("the taint of an administrator is gone: %+v", n)
	}
	running := slices.ContainsFunc(m.pods, func(p Pod) bool { return fates.Decide(p) != stays })
	if n.Action == Reboot && (running || !m.node.Spec.Unschedulable) {
		m.t.Fatalf("it reboots with %+v", m.pods)
	}
	if !NodeOf(before).Tainted && NodeOf(m.node).Tainted && running {
		m.t.Fatalf("it taints a node on which pods run that would lose their budgets: %+v", m.pods)
	}
	for _, p := range n.Evict {
		if fates.Decide(p) != evicted || !m.node.Spec.Unschedulable {
			m.t.Fatalf("it evicts %+v from a node that is cordoned: %t", p, m.node.Spec.Unschedulable)
		}
	}
}

// happen is something that others do.
func (m *machine) happen() {
	t := m.t
	set := func(kind corev1.NodeConditionType, c Condition) { setCondition(m.node, kind, &c, m.now) }
	switch rapid.IntRange(0, 12).Draw(t, "event") {
	case 0:
		set(nebiusv1alpha1.ConditionSlurmNodeDrain, needDrain)
	case 1:
		set(nebiusv1alpha1.ConditionSlurmNodeReboot, needReboot)
	case 2: // what the one who asks answers to NodeRebooted
		set(nebiusv1alpha1.ConditionSlurmNodeReboot, Condition{corev1.ConditionFalse, nebiusv1alpha1.ReasonNodeRebooted, ""})
		set(nebiusv1alpha1.ConditionSlurmNodeDrain, Condition{corev1.ConditionFalse, nebiusv1alpha1.ReasonNodeRebooted, ""})
	case 3:
		set(nebiusv1alpha1.ConditionSlurmNodeDrain, notKnown)
	case 4:
		set(nebiusv1alpha1.ConditionSlurmNodeReboot, Condition{corev1.ConditionFalse, "Withdrawn", ""})
	case 5:
		if !m.node.Spec.Unschedulable {
			m.cordon, m.node.Spec.Unschedulable = true, true
			m.cordonedBy("kubectl-cordon")
		}
	case 6:
		m.cordon, m.node.Spec.Unschedulable = false, false
		m.cordonedBy("")
	case 7:
		if !NodeOf(m.node).Tainted {
			m.taint = true
			m.node.Spec.Taints = append(m.node.Spec.Taints, nebiusv1alpha1.RebooterTaint())
		}
	case 8:
		if !m.node.Spec.Unschedulable {
			m.made++
			uid := types.UID(fmt.Sprint("pod-", m.made))
			m.pods = append(m.pods, Pod{UID: uid, Namespace: "ns", Name: string(uid), DaemonSet: rapid.Bool().Draw(t, "of a DaemonSet")})
			m.blocked[uid] = rapid.Bool().Draw(t, "protected")
		}
	case 9:
		m.pods = slices.DeleteFunc(m.pods, func(p Pod) bool { return p.Leaving })
	case 10:
		m.blocked = map[types.UID]bool{}
	case 11:
		m.forget()
	case 12:
		m.restart()
	}
	m.now = m.now.Add(time.Duration(rapid.IntRange(0, 200).Draw(t, "seconds")) * time.Second)
}

// settle lets the rebooter act until it waits for something. Evicted pods end, and the machine goes down when it is asked to.
func (m *machine) settle() {
	for range 200 {
		if m.step() {
			continue
		}
		m.pods = slices.DeleteFunc(m.pods, func(p Pod) bool { return p.Leaving })
		again := Decide(m.facts()).Again
		switch {
		case m.reboot.Tries > 0 && again.Equal(m.reboot.Again):
			m.restart()
		case !again.IsZero():
			m.now = again
		case Decide(m.facts()).Action == Wait:
			return
		}
	}
	m.t.Fatalf("it does not come to rest: %+v", Decide(m.facts()))
}

func TestInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &machine{t: t, now: now, node: &corev1.Node{}, blocked: map[types.UID]bool{}}
		m.forget()
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			m.happen()
			for range rapid.IntRange(0, 4).Draw(t, "steps") {
				m.step()
			}
		}
		m.comesDown()
		m.comesBack()
	})
}

// comesDown asks for a reboot, with two restarts of the rebooter in the middle, and expects a drained node and one reboot.
func (m *machine) comesDown() {
	m.blocked = map[types.UID]bool{}
	setCondition(m.node, nebiusv1alpha1.ConditionSlurmNodeDrain, &needDrain, m.now)
	setCondition(m.node, nebiusv1alpha1.ConditionSlurmNodeReboot, &needReboot, m.now)
	for range 2 {
		for range rapid.IntRange(0, 6).Draw(m.t, "steps before a restart") {
			m.step()
		}
		m.forget()
	}
	m.settle()
	n := NodeOf(m.node)
	if n.Reboot.Reason != nebiusv1alpha1.ReasonNodeRebooted || n.Drain.Reason != nebiusv1alpha1.ReasonNodeDrained || !n.Cordoned || !n.Tainted || n.Marks.RebootFrom != "" {
		m.t.Fatalf("after a reboot the node is %+v", n)
	}
}

// comesBack takes all back, and expects a node as an administrator wants it.
func (m *machine) comesBack() {
	for _, kind := range []corev1.NodeConditionType{nebiusv1alpha1.ConditionSlurmNodeDrain, nebiusv1alpha1.ConditionSlurmNodeReboot} {
		setCondition(m.node, kind, &Condition{corev1.ConditionFalse, nebiusv1alpha1.ReasonNodeRebooted, ""}, m.now)
	}
	m.settle()
	n := NodeOf(m.node)
	if n.Marks != (Marks{}) || n.Cordoned != m.cordon || n.Tainted != m.taint || n.Drain.Status != corev1.ConditionFalse {
		m.t.Fatalf("in the end the node is %+v; cordoned by an administrator: %t, tainted: %t", n, m.cordon, m.taint)
	}
}

func FuzzWhoseCordonItIs(f *testing.F) {
	f.Add(`{"f:spec":{"f:unschedulable":{}}}`)
	f.Add(`{"f:spec":[]}`)
	f.Add(`{"f:metadata":{}}`)
	f.Fuzz(func(t *testing.T, fields string) {
		n := &corev1.Node{}
		n.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: FieldManager, FieldsV1: metav1.NewFieldsV1(fields)}}
		ours := cordonedByUs(n)
		if ours && !json.Valid([]byte(fields)) {
			t.Errorf("%q says that the cordon is ours", fields)
		}
		n.ManagedFields[0].Manager = "kubectl-cordon"
		if cordonedByUs(n) {
			t.Errorf("%q of somebody else says that the cordon is ours", fields)
		}
		if n.ManagedFields = nil; cordonedByUs(n) {
			t.Error("nothing says that the cordon is ours")
		}
	})
}
