// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

const restPath = "spec.slurmNodes.rest"

// restAPI composes slurmrestd. There always is one, since the operator itself speaks to Slurm through it: workers are
// drained that way before they go. rest.enabled only decides whether users of the cluster get a Service of it.
func (c *composer) restAPI() *slinkyv1beta1.RestApi {
	node := c.spec.SlurmNodes.REST
	if !node.Enabled && !c.hasFilter(node.K8sNodeFilterName) {
		// Admission lets any name pass while rest is not enabled, and seldom does anybody clean it up.
		node.K8sNodeFilterName = ""
	}
	container := c.container(node.REST, restPath+".rest", withoutCPU)
	for _, v := range []struct {
		name  string
		value int32
	}{{"SLURMRESTD_MAX_CONNECTIONS", node.MaxConnections}, {"SLURMRESTD_THREAD_COUNT", node.ThreadCount}} {
		if v.value > 0 {
			container.Env = append(container.Env, corev1.EnvVar{Name: v.name, Value: strconv.Itoa(int(v.value))})
		}
	}
	size := int32(1)
	if node.Size != nil {
		c.ignore(*node.Size == 0, restPath+".size")
		size = max(size, *node.Size)
	}
	return &slinkyv1beta1.RestApi{
		ObjectMeta: c.meta(c.cluster.RestAPIName(), "rest"),
		Spec: slinkyv1beta1.RestApiSpec{
			ControllerRef: c.controllerRef(),
			Replicas:      &size,
			Slurmrestd:    containerOverlay(container),
			Template:      podTemplate(c.podSpec(node.SlurmNode, node.HostUsers, node.REST, restPath), nil),
			Service:       slinkyv1beta1.ServiceSpec{Port: node.REST.Port},
		},
	}
}

func (c *composer) hasFilter(name string) bool {
	for i := range c.spec.K8sNodeFilters {
		if c.spec.K8sNodeFilters[i].Name == name {
			return true
		}
	}
	return false
}
