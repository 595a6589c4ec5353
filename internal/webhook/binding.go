// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/render/label"
)

// binder gives a worker the topology of its Kubernetes node in the moment in which the scheduler binds it, so that slurmd can
// register with it. It puts the annotation on the Binding, from where the API server takes it to the pod in the same write. So it
// has no write of its own, and nothing to undo in a dry run.
//
// It never refuses: a pod without topology is a worker in the wrong place of the network, a pod that cannot be bound is
// none.
type binder struct {
	live    client.Reader
	options Options
}

// Default adds the annotations to the Binding of a worker.
func (b *binder) Default(ctx context.Context, binding *corev1.Binding) error {
	// The request has the namespace and the name of the pod; the scheduler's Binding has them as well, others' may not.
	namespace, name := binding.Namespace, binding.Name
	if request, err := admission.RequestFromContext(ctx); err == nil {
		namespace, name = request.Namespace, request.Name
	}
	if binding.Target.Kind != "" && binding.Target.Kind != "Node" || !b.options.covers(namespace) {
		return nil
	}
	topology, err := b.topology(ctx, types.NamespacedName{Namespace: namespace, Name: name}, binding.Target.Name)
	if err != nil {
		log.FromContext(ctx).Error(err, "Could not look up the topology of a worker, which is bound without", "pod", namespace+"/"+name, "node", binding.Target.Name)
		return nil
	}
	for key, value := range topology {
		if binding.Annotations == nil {
			binding.Annotations = map[string]string{}
		}
		binding.Annotations[key] = value
	}
	return nil
}

// topology returns what the node has about the place of its workers in the network; nothing for other pods.
func (b *binder) topology(ctx context.Context, pod types.NamespacedName, node string) (map[string]string, error) {
	var p corev1.Pod
	if err := b.live.Get(ctx, pod, &p); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if p.Labels[label.Name] != slinkyv1beta1.NameSlurmd {
		return nil, nil
	}
	var n corev1.Node
	if err := b.live.Get(ctx, types.NamespacedName{Name: node}, &n); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	out := map[string]string{}
	for _, key := range []string{slinkyv1beta1.AnnotationTopologySpec, slinkyv1beta1.AnnotationTopologyLine} {
		if value, ok := n.Annotations[key]; ok {
			out[key] = value
		}
	}
	if line, ok := out[slinkyv1beta1.AnnotationTopologyLine]; ok && out[slinkyv1beta1.AnnotationTopologySpec] == "" {
		out[slinkyv1beta1.AnnotationTopologySpec] = line // the new name of the same thing
	}
	return out, nil
}
