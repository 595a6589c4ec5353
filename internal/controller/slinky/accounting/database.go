// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package accounting

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmdbd"
)

// databaseSettleTimeout is how long a slurmdbd that has just started may take to connect to its database, and the kubelet to notice. Until
// then, "not connected" means nothing.
const databaseSettleTimeout = 20 * time.Second

// Sight is what is seen of a slurmdbd and its database.
type Sight struct {
	Accounting *slinkyv1beta1.Accounting
	// Problems are the problems of the spec.
	Problems problem.List
	// Pod is slurmdbd's pod; nil when there is none.
	Pod *corev1.Pod
	// EmbeddedStarting reports whether there is an embedded database that is not ready.
	EmbeddedStarting bool
	Now              time.Time
}

// Reachable returns the condition DatabaseReachable. It is False only when the sidecar beside slurmdbd has looked and seen no
// connection; whatever hides the sidecar makes it Unknown.
func Reachable(s Sight) metav1.Condition {
	say := func(status metav1.ConditionStatus, reason, format string, args ...any) metav1.Condition {
		return metav1.Condition{
			Type: slinkyv1beta1.ConditionDatabaseReachable, Status: status, Reason: reason, Message: fmt.Sprintf(format, args...),
		}
	}
	a := s.Accounting
	if a.Spec.External {
		return say(metav1.ConditionUnknown, slinkyv1beta1.ReasonExternal, "slurmdbd runs elsewhere, and only it knows whether it is connected")
	}
	if missing, ok := s.passwordProblem(); ok {
		return say(metav1.ConditionFalse, slinkyv1beta1.ReasonPasswordMissing, "%s", missing)
	}
	storage, _ := a.Database()
	where := fmt.Sprintf("database %s at %s:%d", storage.Database, storage.Host, storage.Port)
	watcher, running := s.watcher()
	switch {
	case !running && s.EmbeddedStarting:
		return say(metav1.ConditionFalse, slinkyv1beta1.ReasonDatabaseStarting, "the embedded database is not ready")
	case !running:
		return say(metav1.ConditionUnknown, slinkyv1beta1.ReasonDatabaseNotSeen, "slurmdbd does not run, and only it knows whether it is connected")
	case s.nodeSilent():
		return say(metav1.ConditionUnknown, slinkyv1beta1.ReasonDatabaseNotSeen, "the Kubernetes node of Pod %s does not answer", s.Pod.Name)
	case watcher.Ready:
		return say(metav1.ConditionTrue, slinkyv1beta1.ReasonDatabaseConnected, "slurmdbd is connected to %s", where)
	case s.EmbeddedStarting:
		return say(metav1.ConditionFalse, slinkyv1beta1.ReasonDatabaseStarting, "the embedded database is not ready")
	case s.Now.Before(settled(watcher)):
		return say(metav1.ConditionUnknown, slinkyv1beta1.ReasonDatabaseNotSeen, "slurmdbd has just started")
	default:
		return say(metav1.ConditionFalse, slinkyv1beta1.ReasonDatabaseUnreachable,
			"slurmdbd has no connection to %s as user %s: nothing answers there, or it refuses the user, the password or the certificates; "+
				"\"kubectl logs %s -c %s\" says which", where, storage.Username, s.Pod.Name, slinkyv1beta1.NameSlurmdbd)
	}
}

// Again returns when the condition changes by time alone, or zero.
func (s Sight) Again() time.Time {
	watcher, running := s.watcher()
	if !running || watcher.Ready || !s.Now.Before(settled(watcher)) {
		return time.Time{}
	}
	return settled(watcher)
}

func (s Sight) passwordProblem() (string, bool) {
	path := slurmdbd.PasswordPath(s.Accounting)
	i := slices.IndexFunc(s.Problems, func(p problem.Problem) bool { return p.Path == path && p.Reason == slinkyv1beta1.ReasonKeyMissing })
	if i < 0 {
		return "", false
	}
	return s.Problems[i].Error(), true
}

// watcher returns the sidecar that checks the connection to the database, when it runs.
func (s Sight) watcher() (corev1.ContainerStatus, bool) {
	if s.Pod == nil || s.Pod.DeletionTimestamp != nil {
		return corev1.ContainerStatus{}, false
	}
	for _, c := range s.Pod.Status.InitContainerStatuses {
		if c.Name == slurmdbd.DatabaseWatcher {
			return c, c.State.Running != nil
		}
	}
	return corev1.ContainerStatus{}, false
}

// nodeSilent reports whether the pod is shown not ready although its containers were: the node controller sets that on the pods of a node
// whose kubelet does not report.
func (s Sight) nodeSilent() bool {
	for _, c := range s.Pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status != corev1.ConditionTrue {
			return c.Status == corev1.ConditionUnknown || containersReady(s.Pod)
		}
	}
	return false
}

func containersReady(pod *corev1.Pod) bool {
	unready := func(c corev1.ContainerStatus) bool { return !c.Ready }
	return !slices.ContainsFunc(slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses), unready)
}

func settled(watcher corev1.ContainerStatus) time.Time {
	return watcher.State.Running.StartedAt.Add(databaseSettleTimeout)
}
