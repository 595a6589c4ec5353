// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/controller/slinky/nodeset/nodesetplan"
	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
	"github.com/coxswain-hpc/coxswain/internal/slurm/link"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// linkOf returns the link to the Slurm cluster that the workers belong to, if there is one.
func (r *reconciler) linkOf(n *slinkyv1beta1.NodeSet) (*link.Link, bool) {
	return r.links.Get(link.Key{Namespace: n.Namespace, Name: n.Spec.ControllerRef.Name})
}

// ask adds to the facts what Slurm reports now of the workers' nodes, and returns the names of those that it has. Without a fresh answer
// everything stays Unknown.
func (r *reconciler) ask(ctx context.Context, n *slinkyv1beta1.NodeSet, pods []corev1.Pod, facts *nodesetplan.Input) (hostlist.Set, error) {
	registered := hostlist.SetOf()
	facts.Lost, facts.JobsWantedSince = workerpod.Lost(n), r.interest.since(client.ObjectKeyFromObject(n))
	l, ok := r.linkOf(n)
	if !ok {
		return registered, nil
	}
	snapshot := l.Snapshot()
	if snapshot.Trust != link.Fresh {
		return registered, nil
	}
	facts.Asked, facts.Listed = snapshot.Taken, snapshot.Listed
	reservation, missing := nodesetplan.ReservationName(n.Name), false
	for i := range pods {
		name := workerpod.SlurmNode(&pods[i])
		found, known := snapshot.Node(name)
		facts.Pods[i].Registered, facts.Pods[i].Forgotten = known, snapshot.Forgotten(name)
		if found == nil {
			missing = missing || facts.Pods[i].Ready
			facts.Pods[i].Elsewhere = workerpod.Elsewhere(&pods[i], snapshot)
			continue
		}
		registered.Add(name)
		// The pod's conditions follow a moment later, and never on a pod that is deleted.
		if busy := snapshot.State(name).Busy(); busy != node.Unknown {
			facts.Pods[i].Busy = busy == node.Yes
		}
		if end, known := snapshot.LastEnd(name); known == node.Yes {
			facts.Pods[i].Deadline, facts.Pods[i].DeadlineKnown = end, true
		}
		facts.Pods[i].Maintained = node.AnswerOf(found.Reservation == reservation).And(snapshot.State(name).InMaintenance())
	}
	if !missing {
		return registered, nil
	}
	return registered, r.askOthers(ctx, n, snapshot, facts)
}

// askOthers adds the workers of other NodeSets of the cluster to the facts.
func (r *reconciler) askOthers(ctx context.Context, n *slinkyv1beta1.NodeSet, snapshot *link.Snapshot, facts *nodesetplan.Input) error {
	all, err := workerpod.OfCluster(ctx, r.Client, n)
	if err != nil {
		return err
	}
	for i := range all {
		if p := &all[i]; !metav1.IsControlledBy(p, n) {
			facts.Others = append(facts.Others, workerpod.Seen(p, snapshot))
		}
	}
	return nil
}
