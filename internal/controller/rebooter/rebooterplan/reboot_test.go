// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package rebooterplan

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/rules"
)

// TestMain runs the tests, and fails when there is a rule that none of them has reached.
func TestMain(m *testing.M) { os.Exit(rules.Main(m, lists())) }

func TestEveryListAnswersItsQuestion(t *testing.T) { rules.Complete(t, lists()) }

var now = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// The conditions of a node, in short.
var (
	needDrain  = Condition{corev1.ConditionTrue, "NodeNeedDrain", ""}
	needReboot = Condition{corev1.ConditionTrue, "NodeNeedReboot", ""}
	draining   = Condition{corev1.ConditionTrue, nebiusv1alpha1.ReasonNodeDraining, "pods are being evicted"}
	drained    = Condition{corev1.ConditionTrue, nebiusv1alpha1.ReasonNodeDrained, "no pod is left that has to be evicted"}
	rebooting  = Condition{corev1.ConditionTrue, nebiusv1alpha1.ReasonNodeRebooting, "the machine reboots from boot id a"}
	rebooted   = Condition{corev1.ConditionTrue, nebiusv1alpha1.ReasonNodeRebooted, "the boot id was a and is b"}
	undrained  = Condition{corev1.ConditionFalse, nebiusv1alpha1.ReasonNodeUndrained, "no drain is requested any more"}
	notKnown   = Condition{corev1.ConditionUnknown, "Lost", ""}
)

func TestDecide(t *testing.T) {
	pod := Pod{UID: "u", Namespace: "ns", Name: "web-0"}
	leaving, daemon := pod, pod
	leaving.Leaving, daemon.DaemonSet = true, true
	all := Marks{Cordoned: true, Tainted: true}
	refused := map[types.UID]Attempt{"u": {Tries: 1, Again: now.Add(time.Second), Refused: "the budget web needs 2 pods"}}
	for _, tt := range []struct {
		name  string
		facts Facts
		want  Next
	}{
		{"a node of which nothing is asked is left alone", Facts{}, Next{Action: Wait}},
		{"the cordon of an administrator stays", Facts{Node: Node{Cordoned: true, Tainted: true}}, Next{Action: Wait}},
		{
			"what is unknown changes nothing", Facts{Node: Node{Drain: notKnown, Cordoned: true, Marks: all}},
			Next{Action: Wait, Marks: all},
		},
		{"a drain that is asked for is taken up", Facts{Node: Node{Drain: needDrain}}, Next{Action: Tell, Drain: &draining}},
		{
			"a reboot that is asked for is taken up with the boot id", Facts{Boot: "a", Node: Node{Reboot: needReboot}},
			Next{Action: Tell, Drain: &draining, Marks: Marks{DrainOwn: true, RebootFrom: "a"}},
		},
		{
			"a reboot during a drain notes the boot id only", Facts{Boot: "a", Node: Node{Drain: drained, Reboot: needReboot}},
			Next{Action: Tell, Marks: Marks{RebootFrom: "a"}},
		},
		{
			"a drain that is asked for during one for a reboot is somebody's", Facts{Boot: "a", Node: Node{Drain: needDrain, Reboot: needReboot, Marks: Marks{DrainOwn: true, RebootFrom: "a"}}},
			Next{Action: Tell, Drain: &draining, Marks: Marks{RebootFrom: "a"}},
		},
		{"a node that is drained is cordoned with a mark", Facts{Node: Node{Drain: draining}, Pods: []Pod{pod}}, Next{Action: Cordon, Marks: Marks{Cordoned: true}}},
		{"a pod is evicted", Facts{Node: Node{Drain: draining, Cordoned: true}, Pods: []Pod{pod, daemon}}, Next{Action: Evict, Evict: []Pod{pod}}},
		{
			"a refused eviction is told and tried later", Facts{Node: Node{Drain: draining, Cordoned: true}, Pods: []Pod{pod}, Evictions: refused},
			Next{Action: Tell, Drain: &Condition{corev1.ConditionTrue, nebiusv1alpha1.ReasonNodeDraining, "evictions are refused: ns/web-0: the budget web needs 2 pods"}, Again: now.Add(time.Second)},
		},
		{
			"a worker that tolerates the taint is awaited and named", Facts{Node: Node{Drain: draining, Cordoned: true}, Pods: []Pod{{Namespace: "ns", Name: "w-0", Tolerates: true, Protected: true}}},
			Next{Action: Tell, Drain: &Condition{corev1.ConditionTrue, nebiusv1alpha1.ReasonNodeDraining, "evictions are refused: ns/w-0: jobs may run there"}},
		},
		{"the end of a pod is awaited without a word", Facts{Node: Node{Drain: draining, Cordoned: true}, Pods: []Pod{leaving}}, Next{Action: Wait}},
		{"a node without pods to evict is tainted", Facts{Node: Node{Drain: draining, Cordoned: true}, Pods: []Pod{daemon}}, Next{Action: SetTaint, Marks: Marks{Tainted: true}}},
		{"a tainted node without pods to evict is drained", Facts{Node: Node{Drain: draining, Cordoned: true, Tainted: true}}, Next{Action: Tell, Drain: &drained}},
		{
			"a tainted node that is to be rebooted is drained, and reboots", Facts{Boot: "a", Node: Node{Drain: draining, Reboot: needReboot, Cordoned: true, Tainted: true, Marks: Marks{RebootFrom: "a"}}},
			Next{Action: Tell, Drain: &drained, Reboot: &rebooting, Marks: Marks{RebootFrom: "a"}},
		},
		{
			"a drain that is taken back while the node reboots holds up nothing", Facts{Boot: "a", Node: Node{Drain: undrained, Reboot: rebooting, Cordoned: true, Tainted: true, Marks: Marks{RebootFrom: "a"}}},
			Next{Action: Reboot, Marks: Marks{RebootFrom: "a"}},
		},
		{"a drained node stays so", Facts{Node: Node{Drain: drained, Cordoned: true, Tainted: true, Marks: all}}, Next{Action: Wait, Marks: all}},
		{
			"a drained node says that it reboots", Facts{Boot: "a", Node: Node{Drain: drained, Reboot: needReboot, Cordoned: true, Tainted: true, Marks: Marks{RebootFrom: "a"}}},
			Next{Action: Tell, Reboot: &rebooting, Marks: Marks{RebootFrom: "a"}},
		},
		{
			"a drained node that says that it reboots does so", Facts{Boot: "a", Node: Node{Drain: drained, Reboot: rebooting, Cordoned: true, Tainted: true, Marks: Marks{RebootFrom: "a"}}},
			Next{Action: Reboot, Marks: Marks{RebootFrom: "a"}},
		},
		{
			"a machine has time to go down", Facts{
				Boot: "a", Reboot: Attempt{}.Rebooting(now),
				Node: Node{Drain: drained, Reboot: rebooting, Cordoned: true, Tainted: true, Marks: Marks{RebootFrom: "a"}},
			},
			Next{Action: Wait, Again: now.Add(10 * time.Minute), Marks: Marks{RebootFrom: "a"}},
		},
		{
			"another boot id is a reboot", Facts{Boot: "b", Node: Node{Drain: drained, Reboot: rebooting, Marks: Marks{RebootFrom: "a", Cordoned: true}}},
			Next{Action: Tell, Reboot: &rebooted, Marks: Marks{Cordoned: true}},
		},
		{
			"somebody else's reboot counts as one, too", Facts{Boot: "b", Node: Node{Drain: draining, Reboot: needReboot, Marks: Marks{RebootFrom: "a"}}},
			Next{Action: Tell, Reboot: &rebooted},
		},
		{
			"after a reboot the node comes back, if nobody else has asked for the drain", Facts{Boot: "b", Node: Node{Drain: drained, Reboot: rebooted, Cordoned: true, Tainted: true, Marks: Marks{DrainOwn: true, Cordoned: true, Tainted: true}}},
			Next{Action: Release, Marks: Marks{DrainOwn: true}},
		},
		{"a node that comes back after a reboot says so", Facts{Node: Node{Drain: drained, Reboot: rebooted, Marks: Marks{DrainOwn: true}}}, Next{Action: Tell, Drain: &undrained}},
		{
			"after a reboot the node stays drained, if somebody has asked for the drain", Facts{Boot: "b", Node: Node{Drain: drained, Reboot: rebooted, Cordoned: true, Tainted: true, Marks: all}},
			Next{Action: Wait, Marks: all},
		},
		{"a request that is taken back leaves no mark", Facts{Node: Node{Marks: Marks{RebootFrom: "a"}}}, Next{Action: Tell}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.facts.Now = now
			if diff := cmp.Diff(tt.want, Decide(tt.facts)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAConditionNamesAFewPodsOnly(t *testing.T) {
	f := Facts{Now: now, Node: Node{Drain: draining, Cordoned: true}, Evictions: map[types.UID]Attempt{}}
	for _, name := range []string{"e", "d", "c", "b", "a"} {
		f.Pods = append(f.Pods, Pod{UID: types.UID(name), Namespace: "ns", Name: name})
		f.Evictions[types.UID(name)] = Attempt{Again: now.Add(time.Minute), Refused: "no"}
	}
	const want = "evictions are refused: ns/a: no; ns/b: no; ns/c: no; and those of 2 more pods"
	if got := Decide(f).Drain.Message; got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
}

func TestARefusedEvictionIsTriedLessAndLessOften(t *testing.T) {
	var waits []string
	var a Attempt
	for range 7 {
		a = a.Next(now, "no")
		waits = append(waits, a.Again.Sub(now).String())
	}
	if got, want := strings.Join(waits, " "), "5s 10s 20s 40s 1m20s 2m0s 2m0s"; got != want {
		t.Errorf("it waits %s, want %s", got, want)
	}
}

func TestWhichPodsStay(t *testing.T) {
	tolerating := func(tolerations ...corev1.Toleration) *corev1.Pod {
		return &corev1.Pod{Spec: corev1.PodSpec{Tolerations: tolerations}}
	}
	controlled := func(kind string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{Kind: kind, Controller: new(true)}}}}
	}
	worker := func(protect string) *corev1.Pod {
		p := tolerating(corev1.Toleration{Operator: corev1.TolerationOpExists})
		p.Labels = map[string]string{slinkyv1beta1.LabelPodProtect: protect}
		return p
	}
	key := nebiusv1alpha1.RebooterTaint().Key
	for _, tt := range []struct {
		name string
		pod  *corev1.Pod
		want fate
	}{
		{"a plain pod is evicted", &corev1.Pod{}, evicted},
		{"a pod of a StatefulSet is evicted", controlled("StatefulSet"), evicted},
		{"a pod of a DaemonSet stays", controlled("DaemonSet"), stays},
		{"a pod that the kubelet runs stays", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{corev1.MirrorPodAnnotationKey: "x"}}}, stays},
		{"a pod that has ended stays", &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodSucceeded}}, stays},
		{"a pod that is being deleted ends", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{Time: now}}}, ends},
		{"a pod that tolerates everything stays", tolerating(corev1.Toleration{Operator: corev1.TolerationOpExists}), stays},
		{"a pod that tolerates the taint by its value stays", tolerating(corev1.Toleration{Key: key, Value: "true", Effect: corev1.TaintEffectNoExecute}), stays},
		{"a pod that tolerates another value is evicted", tolerating(corev1.Toleration{Key: key, Value: "false"}), evicted},
		{"a pod that tolerates the key with another effect is evicted", tolerating(corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}), evicted},
		{"a worker that tolerates everything is awaited while it is protected", worker("true"), protected},
		{"a worker that tolerates everything stays when it is not protected", worker("false"), stays},
		{"a worker that tolerates nothing is evicted, which its budget may refuse", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{slinkyv1beta1.LabelPodProtect: "true"}}}, evicted},
		{
			"a pod that tolerates the taint for a time is evicted",
			tolerating(corev1.Toleration{Operator: corev1.TolerationOpExists, TolerationSeconds: new(int64(300))}), evicted,
		},
		{
			"a pod that tolerates only what every pod does is evicted",
			tolerating(corev1.Toleration{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}), evicted,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := fates.Decide(PodOf(tt.pod)); got != tt.want {
				t.Errorf("the fate is %d, want %d", got, tt.want)
			}
		})
	}
}

func TestATransitionTimeIsThatOfTheStatus(t *testing.T) {
	n := &corev1.Node{}
	Write(n, Next{Action: Tell, Drain: &draining}, now)
	Write(n, Next{Action: Tell, Drain: &drained}, now.Add(time.Minute))
	c := n.Status.Conditions[0]
	if !c.LastTransitionTime.Time.Equal(now) || !c.LastHeartbeatTime.Time.Equal(now.Add(time.Minute)) || len(n.Status.Conditions) != 1 {
		t.Errorf("the conditions are %+v", n.Status.Conditions)
	}
	Write(n, Next{Action: Tell, Drain: &undrained}, now.Add(2*time.Minute))
	if c := n.Status.Conditions[0]; !c.LastTransitionTime.Time.Equal(now.Add(2 * time.Minute)) {
		t.Errorf("the condition is %+v", c)
	}
}

func TestACordonThatSomebodyElseHasSetSinceStays(t *testing.T) {
	for _, tt := range []struct {
		name, manager string
		cordoned      bool
	}{
		{"the rebooter was the last to cordon the node", FieldManager, false},
		{"somebody has uncordoned the node and cordoned it again", "kubectl-cordon", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
				Annotations:   map[string]string{nebiusv1alpha1.AnnotationRebooterCordoned: "true"},
				ManagedFields: []metav1.ManagedFieldsEntry{{Manager: tt.manager, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:unschedulable":{}}}`)}},
			}, Spec: corev1.NodeSpec{Unschedulable: true}}
			step := Decide(Facts{Now: now, Node: NodeOf(n)})
			if step.Action != Release {
				t.Fatalf("nothing is asked for, and the rebooter does %+v", step)
			}
			Write(n, step, now)
			if n.Spec.Unschedulable != tt.cordoned || n.Annotations[nebiusv1alpha1.AnnotationRebooterCordoned] != "" {
				t.Errorf("cordoned: %t; annotations %v", n.Spec.Unschedulable, n.Annotations)
			}
		})
	}
}
