// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package login_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/coxswain-hpc/coxswain/internal/render/login"
)

func TestLoginPodsHaveHostNames(t *testing.T) {
	many := strings.Fields(strings.Repeat("x ", 100))
	for i := range many {
		many[i] = fmt.Sprintf("old-%02d=10.1.0.%d", i, i)
	}
	for _, tt := range []struct {
		name       string
		pods, live []string
		want       string
		six        bool
	}{
		{name: "a LoginSet without pods has none"},
		{name: "pods are named in the order of their names", pods: []string{"b=10.0.0.2", "a=10.0.0.1"}, want: "a=10.0.0.1 b=10.0.0.2"},
		{name: "a pod without an address has no name yet", pods: []string{"a="}},
		{name: "a name that is no label of DNS is left out", pods: []string{"a.b=10.0.0.1", "c=10.0.0.2"}, want: "c=10.0.0.2"},
		{name: "addresses may be of IPv6", pods: []string{"a=fd00::1"}, want: "a=fd00::1", six: true},
		{name: "a pod that is gone keeps its name behind the others", pods: []string{"b=10.0.0.2"}, live: []string{"a=10.0.0.1", "old=10.0.0.9"}, want: "b=10.0.0.2 a=10.0.0.1 old=10.0.0.9"},
		{name: "a pod that comes back has its new address alone", pods: []string{"a=10.0.0.7"}, live: []string{"a=10.0.0.1"}, want: "a=10.0.0.7"},
		{name: "the last 64 pods to go keep their names", live: many, want: strings.Join(many[:64], " ")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := input(t, `{controllerRef: {name: demo}}`)
			for _, p := range tt.pods {
				name, address, _ := strings.Cut(p, "=")
				in.Pods = append(in.Pods, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.PodStatus{PodIP: address}})
			}
			if tt.live != nil {
				in.Hosts = &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4}
			}
			for _, e := range tt.live {
				name, address, _ := strings.Cut(e, "=")
				in.Hosts.Endpoints = append(in.Hosts.Endpoints, discoveryv1.Endpoint{Hostname: &name, Addresses: []string{address}})
			}
			slice := hostsOf(t, in)
			var got []string
			for _, e := range slice.Endpoints {
				got = append(got, *e.Hostname+"="+strings.Join(e.Addresses, ","))
			}
			if diff := cmp.Diff(tt.want, strings.Join(got, " ")); diff != "" {
				t.Error(diff)
			}
			if six := slice.AddressType == discoveryv1.AddressTypeIPv6; six != tt.six {
				t.Errorf("the addresses are of type %s", slice.AddressType)
			}
		})
	}
}

func TestLoginPodsOfAnExternalSlurmctldHaveNoHostNames(t *testing.T) {
	in := input(t, `{controllerRef: {name: demo}}`)
	in.Controller.Spec.External = true
	if slice := hostsOf(t, in); slice != nil {
		t.Errorf("there is an EndpointSlice %s", slice.Name)
	}
}

// hostsOf returns the EndpointSlice that is rendered; nil if there is none.
func hostsOf(t *testing.T, in login.Input) *discoveryv1.EndpointSlice {
	t.Helper()
	for _, o := range login.Render(in).Objects {
		if slice, ok := o.(*discoveryv1.EndpointSlice); ok {
			return slice
		}
	}
	return nil
}
