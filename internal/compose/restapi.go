// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

const restPath = "spec.slurmNodes.rest"

// restAPI composes slurmrestd. There always is one, since the operator itself calls Slurm through it: that is how it drains workers
// before they go. rest.enabled only decides whether users of the cluster get a Service of it.
func (c *composer) restAPI() *slinkyv1beta1.RestApi {
	node := c.spec.SlurmNodes.REST
	c.dropFilter(!node.Enabled, &node.K8sNodeFilterName, restPath)
	container := c.container(node.REST, restPath+".rest", withoutCPU)
	for _, v := range []struct {
		name  string
		value int32
	}{{"SLURMRESTD_MAX_CONNECTIONS", node.MaxConnections}, {"SLURMRESTD_THREAD_COUNT", node.ThreadCount}} {
		if v.value > 0 {
			container.Env = append(container.Env, corev1.EnvVar{Name: v.name, Value: strconv.Itoa(int(v.value))})
		}
	}
	pod := c.podSpec(node.SlurmNode, node.HostUsers, node.REST, restPath)
	if controller := &c.spec.SlurmNodes.Controller; controller.SSSD != nil && controller.SSSDConfSecretRefName != "" {
		addPullSecrets(&pod, controller.SSSD.ImagePullSecrets)
	}
	c.besideSSSD(&pod, restPath)
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
			Template:      podTemplate(pod, nil),
			Service:       slinkyv1beta1.ServiceSpec{Port: node.REST.Port},
		},
	}
}
