// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmrestd

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/render/label"
	"github.com/coxswain-hpc/coxswain/internal/render/pod"
)

// networkPolicy admits labelled clients to slurmrestd's port. The operator's pods are labelled by its chart. Labelling a
// namespace takes an administrator, so that nobody admits himself from elsewhere.
func networkPolicy(in Input, set label.Set) *networkingv1.NetworkPolicy {
	client := &metav1.LabelSelector{MatchLabels: map[string]string{slinkyv1beta1.LabelSlurmrestdClient: "true"}}
	operator := &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: in.OperatorNamespace}}
	port := intstr.FromString(slinkyv1beta1.NameSlurmrestd)
	return &networkingv1.NetworkPolicy{
		ObjectMeta: pod.ObjectMeta(in.RestAPI, in.RestAPI.Key().Name, set),
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: set.Selector()},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress: []networkingv1.NetworkPolicyIngressRule{{
				Ports: []networkingv1.NetworkPolicyPort{{Protocol: new(corev1.ProtocolTCP), Port: &port}},
				From: append([]networkingv1.NetworkPolicyPeer{
					{PodSelector: client},
					{PodSelector: client, NamespaceSelector: operator},
					{PodSelector: client, NamespaceSelector: client},
				}, in.RestAPI.Spec.NetworkPolicy.From...),
			}},
		},
	}
}
