// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetesnode

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/health"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// rebooterIndex is the cache's index of the pods of rebooters by the Kubernetes node that they run on.
const rebooterIndex = "coxswain.dev/rebooter-on"

// rebooterOn returns the index entry of a pod that has a rebooter.
func rebooterOn(o client.Object) []string {
	if pod, ok := o.(*corev1.Pod); ok && isRebooter(pod) && pod.Spec.NodeName != "" {
		return []string{pod.Spec.NodeName}
	}
	return nil
}

// isRebooter reports whether a pod has a rebooter. A NodeConfigurator may have a user's container only.
func isRebooter(pod *corev1.Pod) bool {
	return pod.Labels[nebiusv1alpha1.LabelNodeConfigurator] != "" && slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool {
		return slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == nebiusv1alpha1.EnvRebooterNodeName })
	})
}

// gather collects the facts about a Kubernetes node and its workers.
func (r *reconciler) gather(ctx context.Context, n *corev1.Node) (health.Node, error) {
	facts := health.Node{
		Now: r.Clock.Now(), Reboots: r.health.RebootDegraded, Replaces: r.health.ReplaceNodes, NotReadyTimeout: r.health.NotReadyTimeout,
		Leaving: n.DeletionTimestamp != nil, Ignored: r.health.Ignores(n), Maintenance: r.health.Of(n),
		Degraded: health.ConditionOf(n, health.NodeDegraded), Reboot: health.ConditionOf(n, health.NodeReboot),
		Maintained: health.ConditionOf(n, health.NodeMaintenance), Drain: health.ConditionOf(n, health.NodeDrain),
		NotReady: health.ConditionOf(n, health.NodeNotReady), Suspected: health.ConditionOf(n, health.HardwareIssuesSuspected),
		Ready: health.ConditionOf(n, corev1.NodeReady),
	}
	pods, err := r.podsOn(ctx, workerpod.KubernetesNodeIndex, n.Name)
	if err != nil {
		return facts, err
	}
	for i := range pods {
		if pod := &pods[i]; pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
			facts.Workers = append(facts.Workers, r.worker(pod))
		}
	}
	rebooters, err := r.podsOn(ctx, rebooterIndex, n.Name)
	if err != nil {
		return facts, err
	}
	for i := range rebooters {
		facts.Rebooter.Exists = true
		if c := workerpod.Condition(&rebooters[i], corev1.PodReady); c != nil && c.Status == corev1.ConditionTrue && rebooters[i].DeletionTimestamp == nil {
			facts.Rebooter.Ready = c.LastTransitionTime.Time
		}
	}
	return facts, nil
}

// podsOn returns the pods on a Kubernetes node, by an index. They belong to the cache and are only read.
func (r *reconciler) podsOn(ctx context.Context, index, name string) ([]corev1.Pod, error) {
	var pods corev1.PodList
	if err := r.Client.List(ctx, &pods, client.MatchingFields{index: name}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the pods on Node %s: %w", name, err)
	}
	return pods.Items, nil
}

// worker returns what Slurm reports of a worker, and nothing from a snapshot that cannot be trusted.
func (r *reconciler) worker(pod *corev1.Pod) health.Worker {
	w := health.Worker{
		Slurm: workerpod.SlurmNode(pod), Cluster: types.NamespacedName{Namespace: pod.Namespace, Name: pod.Labels[slinkyv1beta1.LabelCluster]},
		Foreign: !r.asks(pod), Created: pod.CreationTimestamp.Time, Leaving: pod.DeletionTimestamp != nil, Known: node.Unknown, Protected: pod.Labels[slinkyv1beta1.LabelPodProtect] == "true",
	}
	l, ok := r.caches.Get(slurmcache.Key(w.Cluster))
	if !ok {
		return w
	}
	readSnapshot(&w, pod, l.Snapshot())
	return w
}

// asks reports whether the machine of a pod may be rebooted and replaced for it. Whoever may create pods can give one the label of a
// worker.
func (r *reconciler) asks(pod *corev1.Pod) bool {
	return workerpod.Owner(pod) != nil && r.health.Asks(pod.Namespace)
}

// readSnapshot reads a worker out of a snapshot. One that is registered under another name is not known to be free.
func readSnapshot(w *health.Worker, pod *corev1.Pod, snapshot *slurmcache.Snapshot) {
	if snapshot.Trust != slurmcache.Fresh || snapshot.Deleted(w.Slurm) {
		return
	}
	said, known := snapshot.Node(w.Slurm)
	if known == node.No && workerpod.RegisteredAs(pod, snapshot) != "" {
		return
	}
	w.Known, w.State = known, snapshot.State(w.Slurm)
	if jobs, known := snapshot.Jobs(w.Slurm); known == node.Yes {
		w.Jobless = node.AnswerOf(len(jobs) == 0)
	}
	if said != nil {
		w.Reason = slurmcache.ReasonOf(said)
		w.Reason.At = snapshot.Ours(said.Name, said.ReasonTime)
	}
}

// countOthers counts the other Kubernetes nodes with workers. behind is true when the cache lacks the condition degraded, not ready or
// suspected that was written last.
func (r *reconciler) countOthers(ctx context.Context, n *corev1.Node) (others health.Others, behind bool, err error) {
	if r.begun != nil && r.begun.Name != n.Name {
		// r.begun is what was written; it does not show what the cache has.
		var cached corev1.Node
		if err := r.Client.Get(ctx, client.ObjectKeyFromObject(r.begun), &cached, client.UnsafeDisableDeepCopy); client.IgnoreNotFound(err) != nil {
			return others, false, fmt.Errorf("reading Node %s: %w", r.begun.Name, err)
		}
		if behind, err := r.Applier.Behind(ctx, &cached); err != nil || behind {
			return others, behind, err
		}
	}
	r.begun = nil
	names, err := r.nodesWithWorkers(ctx)
	if err != nil {
		return others, false, err
	}
	var nodes corev1.NodeList
	if err := r.Client.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
		return others, false, fmt.Errorf("listing Nodes: %w", err)
	}
	for i := range nodes.Items {
		if other := &nodes.Items[i]; other.Name != n.Name && names[other.Name] {
			others.Add(other)
		}
	}
	return others, false, nil
}

// nodesWithWorkers returns the names of the Kubernetes nodes that may be rebooted and replaced for their workers.
func (r *reconciler) nodesWithWorkers(ctx context.Context) (map[string]bool, error) {
	var pods corev1.PodList
	if err := r.Client.List(ctx, &pods, client.HasLabels{slinkyv1beta1.LabelCluster}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing workers: %w", err)
	}
	names := map[string]bool{}
	for i := range pods.Items {
		if name := pods.Items[i].Spec.NodeName; name != "" && r.asks(&pods.Items[i]) {
			names[name] = true
		}
	}
	return names, nil
}
