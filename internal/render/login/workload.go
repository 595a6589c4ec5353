// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package login

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/render"
	"github.com/coxswain-hpc/coxswain/internal/render/label"
	"github.com/coxswain-hpc/coxswain/internal/render/pod"
)

// workload returns what runs the login pods: a Deployment, or a StatefulSet with the Service that gives its pods names.
func workload(l *slinkyv1beta1.LoginSet, set label.Set, template corev1.PodTemplateSpec) []render.Object {
	meta := pod.ObjectMeta(l, l.Key().Name, set, l.Spec.Template.Metadata)
	selector := &metav1.LabelSelector{MatchLabels: set.Selector()}
	if l.Workload() == slinkyv1beta1.LoginWorkloadStatefulSet {
		return []render.Object{podNames(l, set), &appsv1.StatefulSet{
			ObjectMeta: meta,
			Spec: appsv1.StatefulSetSpec{
				Replicas: new(l.Replicas()),
				// Login nodes do not depend on each other; one that does not start must not block the others.
				PodManagementPolicy:  appsv1.ParallelPodManagement,
				RevisionHistoryLimit: new(int32(0)),
				ServiceName:          l.PodServiceName(),
				Selector:             selector,
				Template:             template,
			},
		}}
	}
	deployment := &appsv1.Deployment{
		ObjectMeta: meta,
		Spec: appsv1.DeploymentSpec{
			Replicas:             new(l.Replicas()),
			RevisionHistoryLimit: new(int32(0)),
			Selector:             selector,
			Template:             template,
		},
	}
	if l.Spec.Strategy != nil {
		deployment.Spec.Strategy = *l.Spec.Strategy
	}
	return []render.Object{deployment}
}

// podNames is the headless Service under which each pod of the StatefulSet has a host name of its own.
func podNames(l *slinkyv1beta1.LoginSet, set label.Set) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: pod.ObjectMeta(l, l.PodServiceName(), set),
		Spec: corev1.ServiceSpec{
			ClusterIP: corev1.ClusterIPNone,
			Selector:  set.Selector(),
			Ports: []corev1.ServicePort{{
				Name: portName, Protocol: corev1.ProtocolTCP, Port: slinkyv1beta1.SSHPort, TargetPort: intstr.FromString(portName),
			}},
		},
	}
}
