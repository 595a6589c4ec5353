// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/link"
	plans "github.com/coxswain-hpc/coxswain/internal/nodeset"
	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

// linkOf is the link to the Slurm cluster that the workers belong to, if there is one.
func (r *reconciler) linkOf(n *slinkyv1beta1.NodeSet) (*link.Link, bool) {
	return r.links.Get(link.Key{Namespace: n.Namespace, Name: n.Spec.ControllerRef.Name})
}

// ask adds to the facts what Slurm says now of the workers' nodes, and returns the names of those that it has. Without a
// fresh answer everything stays Unknown.
func (r *reconciler) ask(ctx context.Context, n *slinkyv1beta1.NodeSet, pods []corev1.Pod, facts *plans.Input) (hostlist.Set, error) {
	registered := hostlist.SetOf()
	facts.Lost, facts.AskedJobs = Lost(n), r.asking.since(client.ObjectKeyFromObject(n))
	l, ok := r.linkOf(n)
	if !ok {
		return registered, nil
	}
	snapshot := l.Snapshot()
	if snapshot.Trust != link.Fresh {
		return registered, nil
	}
	facts.Asked, facts.Listed = snapshot.Taken, snapshot.Listed
	reservation, missing := plans.ReservationName(n.Name), false
	for i := range pods {
		name := SlurmNode(&pods[i])
		found, known := snapshot.Node(name)
		facts.Pods[i].Registered, facts.Pods[i].Forgotten = known, snapshot.Forgotten(name)
		if found == nil {
			missing = missing || facts.Pods[i].Ready
			facts.Pods[i].Elsewhere = Elsewhere(&pods[i], snapshot)
			continue
		}
		registered.Add(name)
		// The pod's conditions follow a moment later, and those of a pod that is deleted not at all.
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
func (r *reconciler) askOthers(ctx context.Context, n *slinkyv1beta1.NodeSet, snapshot *link.Snapshot, facts *plans.Input) error {
	all, err := clusterWorkers(ctx, r.Client, n)
	if err != nil {
		return err
	}
	for i := range all {
		if p := &all[i]; !metav1.IsControlledBy(p, n) {
			facts.Others = append(facts.Others, registration(p, snapshot))
		}
	}
	return nil
}

// Elsewhere is the Slurm node behind which the slurmd of a pod stands, when Slurm does not have the one by which the pod is
// looked for: a node that has the pod's address and is not another worker's. It is empty when there is none. A host network
// has the host names of machines, which need not be those of Kubernetes nodes.
func Elsewhere(p *corev1.Pod, snapshot *link.Snapshot) string {
	if !p.Spec.HostNetwork || p.Status.PodIP == "" {
		return ""
	}
	for found := range snapshot.Nodes() {
		state := node.Parse(found.State)
		comment, ok := node.ParseComment(found.Comment)
		if found.Address == p.Status.PodIP && found.Name != SlurmNode(p) && state.NotResponding() != node.Yes && (!ok || comment.PodName == p.Name) {
			return found.Name
		}
	}
	return ""
}

// registration are the facts of a worker, and what Slurm says of its node.
func registration(p *corev1.Pod, snapshot *link.Snapshot) plans.Pod {
	facts, name := Facts(p), SlurmNode(p)
	_, facts.Registered = snapshot.Node(name)
	facts.Forgotten = snapshot.Forgotten(name)
	if facts.Registered == node.No {
		facts.Elsewhere = Elsewhere(p, snapshot)
	}
	return facts
}

// clusterWorkers are the workers of all NodeSets in the cluster of one. They are only to be read.
func clusterWorkers(ctx context.Context, c client.Reader, n *slinkyv1beta1.NodeSet) ([]corev1.Pod, error) {
	var all corev1.PodList
	err := c.List(ctx, &all, client.InNamespace(n.Namespace), client.MatchingLabels{slinkyv1beta1.LabelCluster: n.Spec.ControllerRef.Name},
		client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing the workers of Controller %s/%s: %w", n.Namespace, n.Spec.ControllerRef.Name, err)
	}
	return all.Items, nil
}

// Kept answers whether Slurm still has its state, by a snapshot and all workers in the cluster of a NodeSet; Unknown with an error.
func Kept(ctx context.Context, c client.Reader, n *slinkyv1beta1.NodeSet, snapshot *link.Snapshot) (node.Answer, error) {
	pods, err := clusterWorkers(ctx, c, n)
	if err != nil || snapshot.Trust != link.Fresh {
		return node.Unknown, err
	}
	all := make([]plans.Pod, 0, len(pods))
	for i := range pods {
		all = append(all, registration(&pods[i], snapshot))
	}
	return plans.Kept(all), nil
}
