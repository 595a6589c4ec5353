// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rebooterplan decides what the rebooter of one Kubernetes node does next: drain it, reboot it, let it back. It has no client and
// no clock. Others ask for a drain or a reboot by conditions of the Node, and the rebooter reports there how far it is.
package rebooterplan

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// FieldManager is the name under which the rebooter changes Nodes. By it the API server shows whose a cordon is.
const FieldManager = "coxswain-rebooter"

// Facts are what is known of a node.
type Facts struct {
	// Now is the time of the pass.
	Now time.Time
	// Boot is the id of the boot that runs, see proc_sys_kernel(5) random/boot_id.
	Boot string
	Node Node
	// Pods are those that are bound to the node.
	Pods []Pod
	// Evictions are the attempts of this process to evict pods, by the UIDs of these.
	Evictions map[types.UID]Attempt
	// Reboot is the last attempt of this process to have the machine reboot.
	Reboot Attempt
}

// Node is what matters of a Kubernetes node.
type Node struct {
	Drain, Reboot Condition
	Cordoned      bool
	Tainted       bool
	Marks         Marks
}

// Condition is a condition of a node. Status is empty when the node does not have it.
type Condition struct {
	Status          corev1.ConditionStatus
	Reason, Message string
}

// Marks are what the rebooter has recorded on the node, see the annotations.
type Marks struct {
	Cordoned, Tainted, DrainOwn bool
	RebootFrom                  string
}

// Pod is what matters of a pod.
type Pod struct {
	UID             types.UID
	Namespace, Name string
	// DaemonSet is true if a DaemonSet controls it, Mirror if the kubelet runs it from a file.
	DaemonSet, Mirror bool
	// Tolerates is true if it tolerates the taint for good, Protected if it is a worker on which jobs may run.
	Tolerates, Protected bool
	// Finished is true if its containers have ended for good, Leaving if it is being deleted.
	Finished, Leaving bool
}

// Attempt is something that is tried again until it succeeds, with more time in between each time. Zero is none.
type Attempt struct {
	Tries int
	// Again is when it may be tried next.
	Again time.Time
	// Refused is what the last attempt was refused with; empty when it was not.
	Refused string
}

const (
	// firstRetry and lastRetry bound the time between two attempts to evict one pod.
	firstRetry = 5 * time.Second
	lastRetry  = 2 * time.Minute
	// rebootTimeout is how long a machine has to go down before the reboot is tried again.
	rebootTimeout = 10 * time.Minute
)

// Next returns the attempt after another one to evict a pod.
func (a Attempt) Next(now time.Time, refused string) Attempt {
	wait := lastRetry
	if a.Tries < 5 {
		wait = min(firstRetry<<a.Tries, lastRetry)
	}
	return Attempt{Tries: a.Tries + 1, Again: now.Add(wait), Refused: refused}
}

// Rebooting returns the attempt to have the machine reboot.
func (a Attempt) Rebooting(now time.Time) Attempt {
	return Attempt{Tries: a.Tries + 1, Again: now.Add(rebootTimeout)}
}

// Action is what is done in one step.
type Action string

// The actions.
const (
	// Wait does nothing.
	Wait Action = "wait"
	// Tell writes conditions and marks into the status of the Node.
	Tell Action = "tell"
	// Cordon, SetTaint and Release change the spec of the Node, and the marks with it. Release takes away what has a mark.
	Cordon   Action = "cordon"
	SetTaint Action = "taint"
	Release  Action = "release"
	// Evict evicts pods.
	Evict Action = "evict"
	// Reboot has the machine reboot.
	Reboot Action = "reboot"
)

// Next is the next step. After it, everything is looked at anew.
type Next struct {
	Action Action
	// Drain and Reboot are the wanted conditions; nil leaves one as it is.
	Drain, Reboot *Condition
	// Marks are the wanted marks of the node.
	Marks Marks
	// Evict are the pods to evict now.
	Evict []Pod
	// Again is when to look again although nothing changes; zero is never.
	Again time.Time
}

// Decide returns the next step.
func Decide(f Facts) Next {
	s := newSituation(f)
	n := steps.Decide(s)
	if n.Action == "" {
		n.Action = Wait
	}
	if n.Action != Tell && n.Action != Cordon && n.Action != SetTaint && n.Action != Release {
		n.Marks = f.Node.Marks
	}
	if n.Action == Tell && n.Marks == f.Node.Marks && isAsWanted(n.Drain, f.Node.Drain) && isAsWanted(n.Reboot, f.Node.Reboot) {
		n.Action, n.Drain, n.Reboot = Wait, nil, nil
	}
	return n
}

// isAsWanted reports whether a condition is as it should be.
func isAsWanted(want *Condition, is Condition) bool { return want == nil || *want == is }
