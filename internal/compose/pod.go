// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-hpc/coxswain/api/embedded"
	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

// podSpec returns what the common fields of a component set for its pods.
func (c *composer) podSpec(node nebiusv1.SlurmNode, hostUsers *bool, container nebiusv1.NodeContainer, path string) corev1.PodSpec {
	out := corev1.PodSpec{
		PriorityClassName: node.PriorityClass,
		HostUsers:         hostUsers,
		ImagePullSecrets:  container.ImagePullSecrets,
		InitContainers:    c.initContainers(node.CustomInitContainers, path+".customInitContainers"),
	}
	c.place(&out, node.K8sNodeFilterName, path+".k8sNodeFilterName")
	return out
}

// place applies the node filter of that name.
func (c *composer) place(pod *corev1.PodSpec, name, path string) {
	if name == "" {
		return
	}
	for i := range c.spec.K8sNodeFilters {
		filter := &c.spec.K8sNodeFilters[i]
		if filter.Name != name {
			continue
		}
		pod.Affinity, pod.NodeSelector, pod.Tolerations = c.affinity(filter), filter.NodeSelector, filter.Tolerations
		return
	}
	c.fail(path, "there is no %q in spec.k8sNodeFilters; add it there, or leave this out to run anywhere", name)
}

// affinity decodes the affinity of a node filter.
func (c *composer) affinity(filter *nebiusv1.K8sNodeFilter) *corev1.Affinity {
	if decoded, ok := c.affinities[filter.Name]; ok {
		return decoded
	}
	decoded, err := filter.Affinity.Decode()
	c.failIf("spec.k8sNodeFilters["+filter.Name+"].affinity", err)
	c.affinities[filter.Name] = decoded
	return decoded
}

// dropFilter leaves out the node filter of a component that can do without, as one without pods, if there is no such filter.
// Admission lets any name pass there, as Soperator does.
func (c *composer) dropFilter(unwanted bool, name *string, path string) {
	known := slices.ContainsFunc(c.spec.K8sNodeFilters, func(f nebiusv1.K8sNodeFilter) bool { return f.Name == *name })
	if *name != "" && unwanted && !known {
		c.ignore(true, path+".k8sNodeFilterName")
		*name = ""
	}
}

// podTemplate makes the overlay of a component's pods.
func podTemplate(spec corev1.PodSpec, annotations map[string]string) slinkyv1beta1.PodTemplate {
	out := slinkyv1beta1.PodTemplate{Metadata: slinkyv1beta1.Metadata{Annotations: annotations}}
	if raw := overlay(spec); raw != nil {
		out.Spec = &embedded.PodSpec{}
		out.Spec.Raw = raw
	}
	return out
}
