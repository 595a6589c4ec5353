// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	nodesets "github.com/coxswain-hpc/coxswain/internal/controller/nodeset"
	"github.com/coxswain-hpc/coxswain/internal/link"
	"github.com/coxswain-hpc/coxswain/internal/nodeset"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

// gather puts together what is known of one worker. Without a link to Slurm nothing is.
func (r *reconciler) gather(ctx context.Context, pod *corev1.Pod, set *slinkyv1beta1.NodeSet) (nodeset.Worker, *link.Link, error) {
	host, err := r.host(ctx, pod.Spec.NodeName)
	if err != nil {
		return nodeset.Worker{}, nil, err
	}
	w := nodeset.Worker{
		Now: r.Clock.Now(), Pod: nodesets.Facts(pod), Protect: set.DisruptionProtection(),
		Host: host, NodeMarked: pod.Annotations[slinkyv1beta1.AnnotationNodeCordoned] != "",
	}
	if set.Spec.DrainTimeout != nil {
		w.DrainTimeout = set.Spec.DrainTimeout.Duration
	}
	l, ok := r.links.Get(link.Key{Namespace: set.Namespace, Name: set.Spec.ControllerRef.Name})
	if !ok {
		w.Why = "no RestApi refers to Controller " + set.Spec.ControllerRef.Name
		return w, nil, nil
	}
	snapshot := l.Snapshot()
	name := nodesets.SlurmNode(pod)
	n, known := snapshot.Node(name)
	switch {
	case snapshot.Trust == link.Stale:
		// The snapshot says why in more words, and in others each time; these go on the pod.
		w.Why = "Slurm does not answer"
		return w, l, nil
	case snapshot.Trust != link.Fresh:
		w.Why = snapshot.Why
		return w, l, nil
	case !r.writes.seen(client.ObjectKeyFromObject(pod), snapshot.Taken):
		// A list that was asked for before the change may show it already; then no other change follows.
		w.Why, w.Again = "waiting to hear of the last change to it", w.Now.Add(time.Second)
		return w, l, nil
	}
	w.Asked, w.Known, w.State = snapshot.Taken, known, snapshot.State(name)
	if n != nil {
		w.Reason = node.Reason{Text: n.Reason, SetBy: n.ReasonUser, At: n.ReasonTime}
	}
	return w, l, nil
}
