// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package workerpod

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

// Slurm is what Slurm has reported of its nodes: a snapshot of the Slurm cache.
type Slurm interface {
	// Node returns a node, nil when Slurm does not have it or that is not known.
	Node(name string) (*rest.Node, node.Answer)
	// At returns the nodes with an address or a host name.
	At(place string) []*rest.Node
	// Forgotten reports whether Slurm had the node, and lost it with most others.
	Forgotten(name string) bool
}

// RegisteredAs returns the Slurm node that the slurmd of a pod has registered as, when Slurm does not have the expected one; empty when there
// is none. It has the pod's address, or the host name that only this pod has, and is not another worker's. A host network has the host
// names of machines, which need not be those of Kubernetes nodes. In its own network a pod registers by another name when its image or
// spec.slurmd.args sets one.
func RegisteredAs(p *corev1.Pod, slurm Slurm) string {
	if p.Status.PodIP == "" {
		return ""
	}
	here := slurm.At(p.Status.PodIP)
	if !p.Spec.HostNetwork {
		here = slices.Concat(here, slurm.At(SlurmNode(p)))
	}
	for _, found := range here {
		comment, ok := node.ParseComment(found.Comment)
		if found.Name != SlurmNode(p) && node.Parse(found.State).NotResponding() != node.Yes && (!ok || comment.PodName == p.Name) {
			return found.Name
		}
	}
	return ""
}

// Seen returns the facts about a worker, with what Slurm reports of its node.
func Seen(p *corev1.Pod, slurm Slurm) Pod {
	facts, name := Facts(p), SlurmNode(p)
	_, facts.Registered = slurm.Node(name)
	facts.Forgotten = slurm.Forgotten(name)
	if facts.Registered == node.No {
		facts.RegisteredAs = RegisteredAs(p, slurm)
	}
	return facts
}

// OfCluster returns the workers of all NodeSets in the cluster of one. They are only to be read.
func OfCluster(ctx context.Context, c client.Reader, n *slinkyv1beta1.NodeSet) ([]corev1.Pod, error) {
	var all corev1.PodList
	err := c.List(ctx, &all, client.InNamespace(n.Namespace), client.MatchingLabels{slinkyv1beta1.LabelCluster: n.Spec.ControllerRef.Name},
		client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing the workers of Controller %s/%s: %w", n.Namespace, n.Spec.ControllerRef.Name, err)
	}
	return all.Items, nil
}

// StateKept answers whether Slurm still has its state, by its snapshot and all workers of its cluster.
func StateKept(all []corev1.Pod, slurm Slurm) node.Answer {
	facts := make([]Pod, 0, len(all))
	for i := range all {
		facts = append(facts, Seen(&all[i], slurm))
	}
	return kept(facts)
}

// kept answers whether Slurm still has its state, by all workers of a cluster: Yes, unless it lacks more of the workers that it has had
// than it has. It is never No: workers may have been made anew since.
func kept(all []Pod) node.Answer {
	registered, missing := 0, 0
	for _, p := range all {
		switch {
		case p.Registered == node.Yes, p.RegisteredAs != "":
			registered++
		case p.Registered == node.No && p.Was && p.Phase == "Running" && !p.Terminating:
			missing++
		}
	}
	if missing > registered {
		return node.Unknown
	}
	return node.Yes
}
