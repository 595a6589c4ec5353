// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package login

import (
	"cmp"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/coxswain-hpc/coxswain/internal/render/label"
	"github.com/coxswain-hpc/coxswain/internal/render/pod"
)

// maxPods is the number of login pods that get names. An EndpointSlice may have 1,000 endpoints (discovery.k8s.io/v1).
const maxPods = 900

// maxGone is the number of pods that are gone and keep their names: jobs of users who were logged in there may still run.
const maxGone = 64

// hosts gives the login pods host names in the Service that slurmctld looks names up in. slurmctld reports the end of a step to the host of
// its srun, by name; a name that does not resolve holds it up for ten seconds, with the lock on all nodes. Pods of a Deployment have no
// names in DNS otherwise (https://kubernetes.io/docs/concepts/services-networking/dns-pod-service/#pods). A pod that is gone keeps its name
// and its address, where nobody answers; the latest to go come first.
func hosts(in Input, set label.Set) *discoveryv1.EndpointSlice {
	out := &discoveryv1.EndpointSlice{
		ObjectMeta:  pod.ObjectMeta(in.LoginSet, in.LoginSet.HostsName(), set),
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{},
	}
	out.Labels[discoveryv1.LabelServiceName] = in.Controller.LoginHostsServiceName()
	out.Labels[discoveryv1.LabelManagedBy] = label.Manager
	if in.Hosts != nil {
		out.AddressType = in.Hosts.AddressType // it cannot change
	}
	there := map[string]bool{}
	for _, p := range slices.SortedFunc(slices.Values(in.Pods), func(a, b corev1.Pod) int { return cmp.Compare(a.Name, b.Name) }) {
		address, err := netip.ParseAddr(p.Status.PodIP)
		name := cmp.Or(p.Spec.Hostname, p.Name)
		if err != nil || len(validation.IsDNS1123Label(name)) > 0 || len(out.Endpoints) == maxPods {
			continue
		}
		if in.Hosts == nil && address.Is6() {
			out.AddressType = discoveryv1.AddressTypeIPv6
		}
		there[name] = true
		out.Endpoints = append(out.Endpoints, discoveryv1.Endpoint{Addresses: []string{p.Status.PodIP}, Hostname: &name})
	}
	if in.Hosts == nil {
		return out
	}
	gone := slices.DeleteFunc(slices.Clone(in.Hosts.Endpoints), func(e discoveryv1.Endpoint) bool { return e.Hostname == nil || there[*e.Hostname] })
	out.Endpoints = append(out.Endpoints, gone[:min(len(gone), maxGone)]...)
	return out
}
