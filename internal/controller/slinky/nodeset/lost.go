// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/controller/slinky/nodeset/nodesetplan"
	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"
	"github.com/coxswain-hpc/coxswain/internal/reconcile/perkey"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// lost reports workers that a Slurm without its state does not have. The condition is also the memory of it; a NodeSet without such workers
// never has it.
func lost(n *slinkyv1beta1.NodeSet, facts nodesetplan.Input, plan nodesetplan.Plan) (c metav1.Condition, ok bool) {
	if facts.SnapshotTime.IsZero() {
		return c, false // Slurm does not answer, and its last answer stays
	}
	c = metav1.Condition{
		Type: slinkyv1beta1.ConditionWorkersUnknown, Status: metav1.ConditionFalse,
		Reason: slinkyv1beta1.ReasonWorkersKnown, Message: "Slurm has every running worker that has ever registered",
	}
	if plan.Lost > 0 {
		c.Status, c.Reason = metav1.ConditionTrue, slinkyv1beta1.ReasonStateLost
		c.Message = fmt.Sprintf("%d workers run that Slurm does not have. Most workers of the cluster are or were missing in Slurm, so it seems to have lost its state. "+
			"Jobs may still run there, so nothing is deleted. Restore Slurm's state, or delete the pods so that the next ones register", plan.Lost)
	}
	return c, plan.Lost > 0 || meta.FindStatusCondition(n.Status.Conditions, c.Type) != nil
}

// slurmctldSince returns since when the slurmctld of a NodeSet has run without a break; zero when that is unknown.
func (r *reconciler) slurmctldSince(ctx context.Context, n *slinkyv1beta1.NodeSet) (time.Time, error) {
	var c slinkyv1beta1.Controller
	if err := r.Client.Get(ctx, types.NamespacedName{Namespace: n.Namespace, Name: n.Spec.ControllerRef.Name}, &c); err != nil {
		return time.Time{}, client.IgnoreNotFound(err)
	}
	var p corev1.Pod // the cache leaves out since when containers run
	if err := r.Live.Get(ctx, types.NamespacedName{Namespace: c.Namespace, Name: c.PodName(0)}, &p); err != nil {
		return time.Time{}, client.IgnoreNotFound(err)
	}
	return runsSince(&c, &p), nil
}

// runsSince returns since when a pod has run the slurmctld of a Controller. It is zero where another one may have been in charge since, as
// when slurmctld is no pod or has backups, and for a pod of which Kubernetes does not hear.
func runsSince(c *slinkyv1beta1.Controller, p *corev1.Pod) time.Time {
	if ready := workerpod.Condition(p, corev1.PodReady); c.Replicas() != 1 || ready == nil || ready.Status != corev1.ConditionTrue {
		return time.Time{}
	}
	for _, s := range p.Status.ContainerStatuses {
		if s.Name == slinkyv1beta1.NameSlurmctld && s.State.Running != nil {
			return s.State.Running.StartedAt.Time
		}
	}
	return time.Time{}
}

// rememberLeaving notes whether Slurm has lost its state while a NodeSet is being deleted, and returns when to look again.
func (r *reconciler) rememberLeaving(ctx context.Context, n *slinkyv1beta1.NodeSet) (again time.Time, err error) {
	f := facts{set: n}
	if err := r.gatherWorkers(ctx, &f); err != nil {
		return again, err
	}
	plan := nodesetplan.Make(f.workers)
	if l, ok := r.cacheOf(n); ok && plan.Relist {
		l.Relist()
	}
	before := n.DeepCopy()
	if c, ok := lost(n, f.workers, plan); ok {
		c.ObservedGeneration = n.Generation
		kube.SetCondition(&n.Status.Conditions, c, r.Clock.Now())
	}
	_, err = r.Applier.PatchStatus(ctx, before, n)
	return plan.Again, reconcile.IgnoreGone(err)
}

// absences remember since when Slurm, whenever it was asked, did not have the nodes of workers. No object has these times: the times on
// pods are from other clocks. All of it may be lost; then the absence is watched for longer.
type absences struct {
	since perkey.Memory[types.UID, map[string]time.Time] // by NodeSet and pod
}

// recall notes what Slurm reports now of the workers of a NodeSet, and fills in what was seen before.
func (a *absences) recall(set types.UID, facts *nodesetplan.Input) {
	a.since.Change(set, func(absent *map[string]time.Time) bool {
		now := map[string]time.Time{}
		for i := range facts.Pods {
			p := &facts.Pods[i]
			if p.Registered != node.No || !p.Ready {
				continue
			}
			since, known := (*absent)[p.Name]
			if !known {
				since = facts.SnapshotTime
			}
			p.Absent, now[p.Name] = since, since
		}
		*absent = now
		return len(now) > 0
	})
}
