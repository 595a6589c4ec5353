// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmd

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

// kubeNodeVariable is the environment variable with the name of the Kubernetes node.
const kubeNodeVariable = "POD_NODE_NAME"

// useHostNetwork prepares a worker for the network of its Kubernetes node.
func useHostNetwork(spec *corev1.PodSpec) {
	nameAfterKubeNode(spec)
	if spec.DNSPolicy == "" {
		// By default such a pod asks the DNS servers of its node, which have no Services, and slurmd never finds slurmctld.
		spec.DNSPolicy = corev1.DNSClusterFirstWithHostNet
	}
}

// nameAfterKubeNode lets slurmd register by the name of the Kubernetes node, by which the operator looks for it. Without -N it takes
// the host name of the machine, which may be a shorter one, or another. The user's own option comes later, and counts.
func nameAfterKubeNode(spec *corev1.PodSpec) {
	for i := range spec.Containers {
		c := &spec.Containers[i]
		if c.Name != slinkyv1beta1.NameSlurmd {
			continue
		}
		if !slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == kubeNodeVariable }) {
			c.Env = append(c.Env, corev1.EnvVar{Name: kubeNodeVariable, ValueFrom: &corev1.EnvVarSource{
				FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.nodeName"},
			}})
		}
		c.Args = append([]string{"-N", "$(" + kubeNodeVariable + ")"}, c.Args...)
	}
}
