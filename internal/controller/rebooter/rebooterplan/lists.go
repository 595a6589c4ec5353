// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package rebooterplan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	"github.com/coxswain-hpc/coxswain/internal/problem/rule"
)

// request is what others ask for by the conditions of a node.
type request int

const (
	nothing request = iota
	unknown
	drain
	reboot
)

//nolint:gochecknoglobals // a list of rules, which nobody changes
var requests = rule.List[Node, request]{
	Question: "What is asked for, by the conditions SlurmNodeDrain and SlurmNodeReboot of a Kubernetes node?",
	Rules: []rule.Rule[Node, request]{
		{
			Name: "one of them is Unknown", Does: "that is not known", Why: "who asks cannot tell, and a guess costs pods or a broken node",
			When: func(n Node) bool { return n.Drain.unknown() || n.Reboot.unknown() }, Then: rule.Is[Node](unknown),
		},
		{
			Name: "SlurmNodeReboot is True, and its reason is not NodeRebooted", Does: "a reboot, and a drain before it", Why: "pods end in an orderly way",
			When: func(n Node) bool {
				return n.Reboot.Status == corev1.ConditionTrue && n.Reboot.Reason != nebiusv1alpha1.ReasonNodeRebooted
			}, Then: rule.Is[Node](reboot),
		},
		{
			Name: "SlurmNodeDrain is True, and not only because the rebooter drained for a reboot", Does: "a drain", Why: "who asked for it takes it back",
			When: func(n Node) bool {
				return n.Drain.Status == corev1.ConditionTrue && (!n.Marks.DrainOwn || !n.Drain.ours())
			},
			Then: rule.Is[Node](drain),
		},
		{Name: "otherwise", Does: "nothing", Why: "most nodes are in service"},
	},
}

// fate is what becomes of a pod of a node that is drained.
type fate int

const (
	stays fate = iota
	ends
	protected
	evicted
)

//nolint:gochecknoglobals // a list of rules, which nobody changes
var fates = rule.List[Pod, fate]{
	Question: "What becomes of a pod of a Kubernetes node that is drained?",
	Rules: []rule.Rule[Pod, fate]{
		{
			Name: "it has failed or succeeded", Does: "it stays", Why: "nothing of it runs",
			When: func(p Pod) bool { return p.Finished },
		},
		{
			Name: "a DaemonSet or the kubelet itself runs it", Does: "it stays", Why: "it would be back at once; it ends with the machine",
			When: func(p Pod) bool { return p.DaemonSet || p.Mirror },
		},
		{
			Name: "it tolerates the taint, without a time limit, and is a worker that is protected from evictions", Does: "the rebooter waits for the end of its protection",
			Why:  "jobs may run there, and would end with the machine",
			When: func(p Pod) bool { return p.Tolerates && p.Protected && !p.Leaving }, Then: rule.Is[Pod](protected),
		},
		{
			Name: "it tolerates the taint otherwise", Does: "it stays", Why: "its owner has said that it may run on such a node",
			When: func(p Pod) bool { return p.Tolerates },
		},
		{
			Name: "it is being deleted", Does: "the rebooter waits for its end", Why: "it has its grace period",
			When: func(p Pod) bool { return p.Leaving }, Then: rule.Is[Pod](ends),
		},
		{
			Name: "otherwise", Does: "it is evicted", Why: "an eviction respects PodDisruptionBudgets",
			Then: rule.Is[Pod](evicted),
		},
	},
}

// situation is the facts, and what follows from them.
type situation struct {
	Facts
	asked request
	// due are pods to evict now. left are all that the drain waits for, these among them.
	due, left []Pod
	// again is when the first of the others may be evicted.
	again time.Time
	// refused are the pods whose evictions were refused, or would be, each with the reason.
	refused []string
}

func newSituation(f Facts) *situation {
	s := &situation{Facts: f, asked: requests.Decide(f.Node)}
	pods := slices.Clone(f.Pods)
	slices.SortFunc(pods, func(a, b Pod) int { return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name)) })
	for _, p := range pods {
		fate := fates.Decide(p)
		if fate == stays {
			continue
		}
		s.left = append(s.left, p)
		switch fate {
		case protected:
			s.refused = append(s.refused, fmt.Sprintf("%s/%s: jobs may run there", p.Namespace, p.Name))
			continue
		case ends:
			continue
		case stays, evicted:
		}
		attempt := f.Evictions[p.UID]
		if attempt.Refused != "" {
			s.refused = append(s.refused, fmt.Sprintf("%s/%s: %s", p.Namespace, p.Name, attempt.Refused))
		}
		if !attempt.Again.After(f.Now) {
			s.due = append(s.due, p)
		} else if s.again.IsZero() || attempt.Again.Before(s.again) {
			s.again = attempt.Again
		}
	}
	return s
}

func (s *situation) drains() bool  { return s.asked == drain || s.asked == reboot }
func (s *situation) reboots() bool { return s.asked == reboot }

// goesDown reports whether the node shows that it reboots. The request for the drain may have been taken back by then: the node was
// drained.
func (s *situation) goesDown() bool {
	return s.reboots() && s.Node.Reboot.Reason == nebiusv1alpha1.ReasonNodeRebooting
}

// begun reports whether the node shows what the rebooter does.
func (s *situation) begun() bool {
	drains := s.Node.Drain.Status == corev1.ConditionTrue && s.Node.Drain.ours()
	return (drains || s.goesDown()) && (!s.reboots() || s.Node.Marks.RebootFrom != "")
}

//nolint:gochecknoglobals // a list of rules, which nobody changes
var steps = rule.List[*situation, Next]{
	Question: "What does the rebooter of a Kubernetes node do next?",
	Rules:    slices.Concat(drainSteps(), rebootSteps(), returnSteps()),
}

func drainSteps() []rule.Rule[*situation, Next] {
	return []rule.Rule[*situation, Next]{
		{
			Name: "it is not known what is asked for", Does: "nothing", Why: "the node stays as it is until somebody knows",
			When: func(s *situation) bool { return s.asked == unknown },
		},
		{
			Name: "a reboot is asked for, and the boot id is another one than when that was first seen", Does: "say NodeRebooted",
			Why: "the machine has been rebooted, whoever did it; its uptime would depend on clocks",
			When: func(s *situation) bool {
				return s.reboots() && s.Node.Marks.RebootFrom != "" && s.Node.Marks.RebootFrom != s.Boot
			},
			Then: (*situation).rebooted,
		},
		{
			Name: "a drain or a reboot is asked for, and the rebooter has not taken it up", Does: "say NodeDraining, and note the boot id for a reboot",
			Why:  "others see who acts, and the boot id must be known before the machine goes down",
			When: func(s *situation) bool { return s.drains() && !s.begun() }, Then: (*situation).begin,
		},
		{
			Name: "… and the node is not cordoned", Does: "cordon it, with a mark", Why: "evicted pods must not come back; without the mark, a cordon is somebody else's",
			When: func(s *situation) bool { return s.drains() && !s.Node.Cordoned },
			Then: func(s *situation) Next {
				n := Next{Action: Cordon, Marks: s.Node.Marks}
				n.Marks.Cordoned = true
				return n
			},
		},
		{
			Name: "… and there are pods to evict, whose last attempt is not too recent", Does: "evict them", Why: "a refused eviction is tried again after 5 s, then 10 s, and every 2 min in the end",
			When: func(s *situation) bool { return s.drains() && len(s.due) > 0 },
			Then: func(s *situation) Next { return Next{Action: Evict, Evict: s.due} },
		},
		{
			Name: "… and pods are still there", Does: "wait, and say NodeDraining with the pods whose evictions are refused", Why: "a budget that blocks must be found without a log",
			When: func(s *situation) bool { return s.drains() && len(s.left) > 0 },
			Then: func(s *situation) Next {
				return Next{Action: Tell, Marks: s.Node.Marks, Drain: s.draining(), Again: s.again}
			},
		},
		{
			Name: "… and the node is not tainted", Does: "taint it, with a mark", Why: "the taint ends pods without asking their budgets, so it comes when none is left that has one",
			When: func(s *situation) bool { return s.drains() && !s.Node.Tainted },
			Then: func(s *situation) Next {
				n := Next{Action: SetTaint, Marks: s.Node.Marks}
				n.Marks.Tainted = true
				return n
			},
		},
		{
			Name: "… and the node says neither that it is drained nor that it reboots", Does: "say NodeDrained, and for a reboot NodeRebooting in the same write",
			Why: "who asked goes on from there, and may take the drain back, which is not to hold up the reboot",
			When: func(s *situation) bool {
				return s.drains() && !s.goesDown() && s.Node.Drain.Reason != nebiusv1alpha1.ReasonNodeDrained
			},
			Then: (*situation).drained,
		},
	}
}

func rebootSteps() []rule.Rule[*situation, Next] {
	return []rule.Rule[*situation, Next]{
		{
			Name: "it is drained, a reboot is asked for, and the node does not say that it reboots", Does: "say NodeRebooting", Why: "afterwards there is nobody to say it",
			When: func(s *situation) bool { return s.reboots() && !s.goesDown() },
			Then: func(s *situation) Next { return Next{Action: Tell, Marks: s.Node.Marks, Reboot: s.rebooting()} },
		},
		{
			Name: "… and the machine was told to reboot within ten minutes", Does: "wait", Why: "its services need time to end",
			When: func(s *situation) bool { return s.reboots() && s.Reboot.Again.After(s.Now) },
			Then: func(s *situation) Next { return Next{Again: s.Reboot.Again} },
		},
		{
			Name: "… and it was not", Does: "reboot, after a last look at the node and its pods", Why: "a cache may be late",
			When: (*situation).reboots, Then: func(*situation) Next { return Next{Action: Reboot} },
		},
		{
			Name: "it is drained, and only a drain is asked for", Does: "nothing", Why: "who asked for it takes it back",
			When: (*situation).drains,
		},
	}
}

func returnSteps() []rule.Rule[*situation, Next] {
	return []rule.Rule[*situation, Next]{
		{
			Name: "nothing is asked for, and there is a mark that the rebooter has cordoned or tainted the node", Does: "take both away, as far as there is a mark, and the rebooter was the last to cordon the node",
			Why:  "a cordon or taint of somebody else stays",
			When: func(s *situation) bool { return s.Node.Marks.Cordoned || s.Node.Marks.Tainted },
			Then: func(s *situation) Next {
				n := Next{Action: Release, Marks: s.Node.Marks}
				n.Marks.Cordoned, n.Marks.Tainted = false, false
				return n
			},
		},
		{
			Name: "… and SlurmNodeDrain is True, or a mark of a drain or a reboot is left", Does: "say NodeUndrained, without marks", Why: "the next reboot begins with another boot id",
			When: func(s *situation) bool { return s.Node.Drain.Status == corev1.ConditionTrue || s.Node.Marks != Marks{} },
			Then: func(s *situation) Next {
				n := Next{Action: Tell}
				if s.Node.Drain.Status == corev1.ConditionTrue {
					n.Drain = &Condition{corev1.ConditionFalse, nebiusv1alpha1.ReasonNodeUndrained, "no drain is requested any more"}
				}
				return n
			},
		},
		{Name: "otherwise", Does: "nothing", Why: "the node is in service, or cordoned by somebody else"},
	}
}

func (s *situation) drained() Next {
	n := Next{Action: Tell, Marks: s.Node.Marks}
	n.Drain = &Condition{corev1.ConditionTrue, nebiusv1alpha1.ReasonNodeDrained, "no pod is left that has to be evicted"}
	if s.reboots() {
		n.Reboot = s.rebooting()
	}
	return n
}

func (s *situation) rebooting() *Condition {
	return &Condition{corev1.ConditionTrue, nebiusv1alpha1.ReasonNodeRebooting, "the machine reboots from boot id " + s.Boot}
}

func (s *situation) rebooted() Next {
	n := Next{Action: Tell, Marks: s.Node.Marks}
	n.Reboot = &Condition{corev1.ConditionTrue, nebiusv1alpha1.ReasonNodeRebooted, fmt.Sprintf("the boot id was %s and is %s", s.Node.Marks.RebootFrom, s.Boot)}
	n.Marks.RebootFrom = ""
	return n
}

func (s *situation) begin() Next {
	n := Next{Action: Tell, Marks: s.Node.Marks}
	if s.reboots() {
		n.Marks.RebootFrom = cmp.Or(n.Marks.RebootFrom, s.Boot)
	}
	if s.Node.Drain.Status != corev1.ConditionTrue || !s.Node.Drain.ours() {
		n.Marks.DrainOwn = s.Node.Drain.Status != corev1.ConditionTrue
		n.Drain = s.draining()
	}
	return n
}

// maxTold is how many pods whose evictions are refused a condition names.
const maxTold = 3

func (s *situation) draining() *Condition {
	message := "pods are being evicted"
	if len(s.refused) > 0 {
		message = "evictions are refused: " + strings.Join(s.refused[:min(maxTold, len(s.refused))], "; ")
	}
	if more := len(s.refused) - maxTold; more > 0 {
		message += fmt.Sprintf("; and those of %d more pods", more)
	}
	return &Condition{corev1.ConditionTrue, nebiusv1alpha1.ReasonNodeDraining, message}
}

// ours reports whether a reason of SlurmNodeDrain is the rebooter's.
func (c Condition) ours() bool {
	return c.Reason == nebiusv1alpha1.ReasonNodeDraining || c.Reason == nebiusv1alpha1.ReasonNodeDrained
}

func (c Condition) unknown() bool {
	return c.Status != "" && c.Status != corev1.ConditionTrue && c.Status != corev1.ConditionFalse
}
