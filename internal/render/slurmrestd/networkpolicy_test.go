// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmrestd_test

import (
	"os"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmrestd"
)

// peer is a pod that connects to slurmrestd.
type peer struct{ namespace, namespaceLabel, label string }

// admits reads a policy as a network plugin does: a peer without a selector of namespaces means the policy's own.
func admits(t *testing.T, policy *networkingv1.NetworkPolicy, p peer) bool {
	t.Helper()
	matches := func(selector *metav1.LabelSelector, set labels.Set) bool {
		s, err := metav1.LabelSelectorAsSelector(selector)
		if err != nil {
			t.Fatal(err)
		}
		return s.Matches(set)
	}
	pod, namespace := labels.Set{}, labels.Set{"kubernetes.io/metadata.name": p.namespace}
	if p.label != "" {
		pod[slinkyv1beta1.LabelSlurmrestdClient] = p.label
	}
	if p.namespaceLabel != "" {
		namespace[slinkyv1beta1.LabelSlurmrestdClient] = p.namespaceLabel
	}
	for _, rule := range policy.Spec.Ingress {
		for _, from := range rule.From {
			here := from.NamespaceSelector == nil && p.namespace == policy.Namespace || from.NamespaceSelector != nil && matches(from.NamespaceSelector, namespace)
			if here && from.PodSelector != nil && matches(from.PodSelector, pod) {
				return true
			}
		}
	}
	return false
}

func TestWhoReachesSlurmrestd(t *testing.T) {
	var policy *networkingv1.NetworkPolicy
	for _, o := range slurmrestd.Render(input(t, `{controllerRef: {name: ctl}}`, `{}`)).Objects {
		if p, ok := o.(*networkingv1.NetworkPolicy); ok {
			policy = p
		}
	}
	if policy == nil || len(policy.Spec.Ingress) != 1 || len(policy.Spec.Ingress[0].Ports) != 1 || policy.Spec.Ingress[0].Ports[0].Port.StrVal != "slurmrestd" {
		t.Fatalf("%+v", policy)
	}
	for _, tt := range []struct {
		name string
		peer peer
		want bool
	}{
		{"the operator", peer{namespace: "coxswain-system", label: "true"}, true},
		{"another pod of the operator's namespace", peer{namespace: "coxswain-system"}, false},
		{"an exporter beside slurmrestd, labelled", peer{namespace: "ns1", label: "true"}, true},
		{"a login pod or a worker, which talk to slurmctld", peer{namespace: "ns1"}, false},
		{"a pod that is labelled otherwise", peer{namespace: "ns1", label: "false"}, false},
		{"a labelled pod of another namespace", peer{namespace: "ns2", label: "true"}, false},
		{"a labelled pod of a labelled namespace", peer{namespace: "ns2", namespaceLabel: "true", label: "true"}, true},
		{"any other pod of a labelled namespace", peer{namespace: "ns2", namespaceLabel: "true"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := admits(t, policy, tt.peer); got != tt.want {
				t.Errorf("it is admitted: %t, want %t", got, tt.want)
			}
		})
	}
}

func TestTheChartLabelsTheOperatorAsAClient(t *testing.T) {
	chart, err := os.ReadFile("../../../helm/coxswain/templates/deployment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if want := slinkyv1beta1.LabelSlurmrestdClient + `: "true"`; !strings.Contains(string(chart), want) {
		t.Errorf("the operator's pods have no label %s, and are shut out", want)
	}
}
