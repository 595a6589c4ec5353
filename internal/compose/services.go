// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/render/label"
	"github.com/coxswain-hpc/coxswain/internal/render/login"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmctld"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmdbd"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmrestd"
)

// services adds the Services by the names that users of a SlurmCluster use, beside those of the components. They select the same pods.
func (c *composer) services() {
	parts := &c.out.Components
	c.service(c.cluster.ControllerServiceName(), "controller", slurmctld.Labels(parts.Controller).Selector(),
		slinkyv1beta1.NameSlurmctld, parts.Controller.ServicePort(), intstr.FromString(slinkyv1beta1.NameSlurmctld))
	if parts.Accounting != nil {
		c.service(c.cluster.AccountingServiceName(), "accounting", slurmdbd.Labels(parts.Accounting).Selector(),
			slinkyv1beta1.NameSlurmdbd, parts.Accounting.ServicePort(), intstr.FromString(slinkyv1beta1.NameSlurmdbd))
	}
	if c.spec.SlurmNodes.REST.Enabled {
		c.service(c.cluster.RESTServiceName(), "rest", slurmrestd.Labels(parts.RestAPI).Selector(),
			slinkyv1beta1.NameSlurmrestd, parts.RestAPI.ServicePort(), intstr.FromString(slinkyv1beta1.NameSlurmrestd))
	}
	if c.spec.SlurmNodes.Login.Size > 0 {
		c.loginService(login.Labels(parts.LoginSet).Selector())
	}
	if len(parts.NodeSets) == 0 {
		return
	}
	if parts.NodeSets[0].Name == c.cluster.WorkerNodeSetName() && c.spec.SlurmNodes.Worker != nil {
		port := cmp.Or(c.spec.SlurmNodes.Worker.Slurmd.Port, slinkyv1beta1.SlurmdPort)
		c.headless(c.cluster.WorkerServiceName(), "worker", port, label.Set{Name: slinkyv1beta1.NameSlurmd, Instance: parts.NodeSets[0].Name}.Selector())
	}
	if len(c.nodeSets) > 0 {
		c.headless(c.cluster.NodeSetServiceName(), "nodeset", slinkyv1beta1.SlurmdPort,
			map[string]string{label.Name: slinkyv1beta1.NameSlurmd, slinkyv1beta1.LabelCluster: parts.Controller.Name})
	}
}

func (c *composer) service(name, component string, selector map[string]string, port string, number int32, target intstr.IntOrString) *corev1.Service {
	out := &corev1.Service{
		ObjectMeta: c.meta(name, component),
		Spec: corev1.ServiceSpec{
			Type:     corev1.ServiceTypeClusterIP,
			Selector: selector,
			Ports:    []corev1.ServicePort{{Name: port, Protocol: corev1.ProtocolTCP, Port: number, TargetPort: target}},
		},
	}
	c.out.Add(out)
	return out
}

// headless gives DNS names to workers, ready or not: slurmctld contacts them before they are ready.
func (c *composer) headless(name, component string, port int32, selector map[string]string) {
	service := c.service(name, component, selector, slinkyv1beta1.NameSlurmd, port, intstr.FromInt32(port))
	service.Spec.ClusterIP = corev1.ClusterIPNone
	service.Spec.PublishNotReadyAddresses = true
}

// loginService adds the Service that users ssh to, which may be open to the outside. The LoginSet has the headless one, by which each login
// pod has a host name.
func (c *composer) loginService(selector map[string]string) {
	login := &c.spec.SlurmNodes.Login
	port := slinkyv1beta1.SSHPort
	if login.SSHD.Port > 0 {
		port = login.SSHD.Port
	}
	target := intstr.FromInt32(slinkyv1beta1.SSHPort)
	service := c.service(c.cluster.LoginServiceName(), "login", selector, "ssh", port, target)
	service.Annotations = login.SSHDServiceAnnotations
	switch login.SSHDServiceType {
	case corev1.ServiceTypeLoadBalancer:
		service.Spec.Type = corev1.ServiceTypeLoadBalancer
		service.Spec.LoadBalancerIP = login.SSHDServiceLoadBalancerIP
		service.Spec.LoadBalancerSourceRanges = login.SSHDServiceLoadBalancerSourceRanges
		service.Spec.Ports[0].NodePort = login.SSHDServiceNodePort
	case corev1.ServiceTypeNodePort:
		service.Spec.Type = corev1.ServiceTypeNodePort
		service.Spec.Ports[0].NodePort = login.SSHDServiceNodePort
	case corev1.ServiceTypeClusterIP, corev1.ServiceTypeExternalName, "":
	}
}
