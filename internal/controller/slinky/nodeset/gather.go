// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	plans "github.com/coxswain-hpc/coxswain/internal/nodeset"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	renderworker "github.com/coxswain-hpc/coxswain/internal/render/worker"
	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// gather puts together what the plan is made from. Kubernetes nodes that cannot be given a worker are problems, and keep
// no other from having one.
func (r *reconciler) gather(ctx context.Context, in renderworker.Input, revision string, pods []corev1.Pod) (facts plans.Input, registered hostlist.Set, problems problem.List, err error) {
	n := in.NodeSet
	facts = plans.Input{
		Now: r.Clock.Now(), Replicas: int(n.Replicas()), Revision: revision, MinReady: minReady(n),
		Daemon:  n.ScalingMode() == slinkyv1beta1.ScalingModeDaemonSet,
		Rolling: n.UpdateType() == slinkyv1beta1.UpdateRolling, Scheduled: n.UpdateType() == slinkyv1beta1.UpdateScheduled,
	}
	for i := range pods {
		facts.Pods = append(facts.Pods, workerpod.Facts(&pods[i]))
	}
	if registered, err = r.ask(ctx, n, pods, &facts); err != nil {
		return plans.Input{}, nil, nil, err
	}
	r.absences.recall(n.UID, &facts)
	if facts.Daemon || n.Spec.PinToNode {
		spec, err := renderworker.Template(in)
		if err != nil {
			return plans.Input{}, nil, nil, err
		}
		var nodes corev1.NodeList
		if err := r.Client.List(ctx, &nodes); err != nil {
			return plans.Input{}, nil, nil, fmt.Errorf("listing the nodes for NodeSet %s/%s: %w", n.Namespace, n.Name, err)
		}
		facts.Nodes, problems = plans.KubeNodes(spec, nodes.Items, facts.Pods)
	}
	if !facts.Daemon {
		problems = nil // host names follow from ordinals
		if n.Spec.PinToNode {
			facts.Pins = plans.Pin(n.Status.OrdinalToNode, facts.Pods, facts.Replicas, facts.Nodes)
		}
	}
	facts.MaxUnavailable = maxUnavailable(n, facts.Desired())
	return facts, registered, problems, nil
}
