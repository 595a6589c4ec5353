// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/controller/slinky/nodeset/nodesetplan"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmd"
)

const hostnamePath = "spec.template.spec.hostname"

// namesakes looks for workers of other NodeSets of the same Controller that have the names of those of n: of as many as the specs ask
// for now, on the Kubernetes nodes that there are now. What comes later, such as from an autoscaler, the NodeSet itself will show.
func (l lookup) namesakes(ctx context.Context, n *slinkyv1beta1.NodeSet, path, wayOut string, f *Findings) error {
	sets, err := l.nodeSets()
	if err != nil {
		return err
	}
	var rivals []*slinkyv1beta1.NodeSet
	called := n.ScalingMode() == slinkyv1beta1.ScalingModeDaemonSet
	for i := range sets {
		other := &sets[i]
		// One that is being deleted keeps its names until its workers are gone. The new ones wait for that.
		if other.Name != n.Name && other.DeletionTimestamp == nil && other.Spec.ControllerRef.Name == n.Spec.ControllerRef.Name {
			rivals = append(rivals, other)
			called = called || other.ScalingMode() == slinkyv1beta1.ScalingModeDaemonSet
		}
	}
	var nodes corev1.NodeList
	if len(rivals) > 0 && called { // workers are called after Kubernetes nodes
		if err := l.live.List(ctx, &nodes); err != nil {
			return fmt.Errorf("listing the Kubernetes nodes: %w", err)
		}
	}
	names := workerNames(n, nodes.Items)
	for _, other := range rivals {
		if name := nodesetplan.SharedName(names, workerNames(other, nodes.Items)); name != "" {
			f.Mistakes = append(f.Mistakes, nodesetplan.Namesakes(path, name, other.Name, wayOut))
		}
	}
	return nil
}

// workerNames returns the names of the workers of a NodeSet. One with a mistake in its template has none: that is reported anyway, and
// it gets no workers.
func workerNames(n *slinkyv1beta1.NodeSet, nodes []corev1.Node) []string {
	template, err := slurmd.Template(slurmd.Input{
		NodeSet: n, Controller: anyController(n, n.Spec.ControllerRef), ClusterDomain: anyDomain, Images: images(),
	})
	if err != nil {
		return nil
	}
	return nodesetplan.WorkerNames(n, template, nodes)
}
