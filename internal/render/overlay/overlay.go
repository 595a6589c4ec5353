// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package overlay lays what users wrote over what Coxswain generated: containers, pod specs and Service specs. The rules
// are those of a strategic merge patch (containers, variables, ports and mounts meet by their key), with these exceptions.
// What is empty is not written (embedded.WithoutEmpty), so that only {"$patch": "delete"} deletes. Arguments follow the
// generated ones. Another handler of a probe, another source of a volume or another value of a variable replaces the
// generated one. A generated container keeps its name. Tolerations, search domains and required pod anti-affinity follow
// the generated ones, without which workers are evicted, do not find each other, or share a machine.
package overlay

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/coxswain-hpc/coxswain/api/embedded"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/problem"
)

// ReasonInvalid is the reason of problems inside user-written pieces.
const ReasonInvalid = slinkyv1beta1.ReasonInvalidOverlay

// Container returns base with the user's container laid over it. The error is a problem.Problem at path.
func Container(base corev1.Container, user *embedded.Container, path string) (corev1.Container, error) {
	piece, err := user.Read()
	if err != nil {
		return base, problem.Errorf(path, ReasonInvalid, "%v", err)
	}
	decoded, patch := piece.Value, piece.Fields
	if decoded == nil {
		return base, nil
	}
	if decoded.Name != "" && decoded.Name != base.Name {
		return base, problem.Errorf(path+".name", ReasonInvalid,
			"this container is called %q; leave the name out (it was %q)", base.Name, decoded.Name)
	}
	delete(patch, "args")
	replaceParts(patch)
	out, err := merge(base, patch)
	if err != nil {
		return base, problem.Errorf(path, ReasonInvalid, "%v", err)
	}
	out.Args = append(append([]string(nil), base.Args...), decoded.Args...)
	return out, nil
}

// PodSpec returns base with the user's pod spec laid over it. The error is a problem.Problem at path.
func PodSpec(base corev1.PodSpec, user *embedded.PodSpec, path string) (corev1.PodSpec, error) {
	piece, err := user.Read()
	if err != nil {
		return base, problem.Errorf(path, ReasonInvalid, "%v", err)
	}
	decoded, patch := piece.Value, piece.Fields
	if decoded == nil {
		return base, nil
	}
	for _, list := range []string{"containers", "initContainers"} {
		for _, container := range items(patch[list]) {
			replaceParts(container)
		}
	}
	keepOneSource(patch)
	out, err := merge(base, patch)
	if err != nil {
		return base, problem.Errorf(path, ReasonInvalid, "%v", err)
	}
	if base.DNSConfig != nil && decoded.DNSConfig != nil && out.DNSConfig != nil {
		out.DNSConfig.Searches = append(slices.Clone(base.DNSConfig.Searches), decoded.DNSConfig.Searches...)
	}
	if len(decoded.Tolerations) > 0 {
		out.Tolerations = append(slices.Clone(base.Tolerations), decoded.Tolerations...)
	}
	joinAntiAffinity(&out, base, decoded)
	return out, nil
}

// joinAntiAffinity keeps both the generated terms and the user's: a list of terms is merged as a whole.
func joinAntiAffinity(out *corev1.PodSpec, base corev1.PodSpec, user *corev1.PodSpec) {
	ours, theirs := requiredAntiAffinity(&base), requiredAntiAffinity(user)
	if len(ours) > 0 && len(theirs) > 0 {
		out.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution = append(slices.Clone(ours), theirs...)
	}
}

func requiredAntiAffinity(spec *corev1.PodSpec) []corev1.PodAffinityTerm {
	if spec.Affinity == nil || spec.Affinity.PodAntiAffinity == nil {
		return nil
	}
	return spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

// ServiceSpec returns the user's Service spec with the generated selector and port in it. External IPs are never taken over: users who
// may write our objects must not attract other people's traffic (CVE-2020-8554).
func ServiceSpec(user *embedded.ServiceSpec, selector map[string]string, port corev1.ServicePort, path string) (corev1.ServiceSpec, error) {
	spec, err := user.Decode()
	if err != nil {
		return corev1.ServiceSpec{}, problem.Errorf(path, ReasonInvalid, "%v", err)
	}
	if spec == nil {
		spec = &corev1.ServiceSpec{}
	}
	if len(spec.ExternalIPs) > 0 {
		err = problem.Errorf(path+".externalIPs", ReasonInvalid, "external IPs are not taken over; use a LoadBalancer or a NodePort")
		spec.ExternalIPs = nil
	}
	spec.Selector = selector
	extra := spec.Ports
	spec.Ports = []corev1.ServicePort{port}
	for _, p := range extra {
		if p.Name != port.Name {
			spec.Ports = append(spec.Ports, p)
		}
	}
	return *spec, err
}

// replaceParts is for the parts of a container that may have one of several members, such as a probe. A part deletes the
// members that it does not name, because with two of them it is invalid. A part that names none changes the rest of it.
func replaceParts(container map[string]any) {
	for _, name := range []string{"startupProbe", "livenessProbe", "readinessProbe"} {
		if probe, ok := container[name].(map[string]any); ok {
			replaceMembers(probe, "exec", "httpGet", "tcpSocket", "grpc")
		}
	}
	if lifecycle, ok := container["lifecycle"].(map[string]any); ok {
		for _, name := range []string{"postStart", "preStop"} {
			if handler, ok := lifecycle[name].(map[string]any); ok {
				replaceMembers(handler, "exec", "httpGet", "tcpSocket", "sleep")
			}
		}
	}
	for _, variable := range items(container["env"]) {
		replaceMembers(variable, "value", "valueFrom")
	}
}

func replaceMembers(part map[string]any, members ...string) {
	named := slices.ContainsFunc(members, func(m string) bool { return part[m] != nil })
	for _, m := range members {
		if named && part[m] == nil {
			part[m] = nil // which deletes the generated one
		}
	}
}

// keepOneSource does the same for volumes, which have many sources: those that the patch does not name are deleted.
func keepOneSource(spec map[string]any) {
	for _, volume := range items(spec["volumes"]) {
		if len(volume) > 1 { // it has more than a name
			retained := make([]any, 0, len(volume))
			for _, key := range slices.Sorted(maps.Keys(volume)) {
				retained = append(retained, key)
			}
			volume["$retainKeys"] = retained
		}
	}
}

// items are the objects in a list.
func items(list any) []map[string]any {
	var out []map[string]any
	values, _ := list.([]any)
	for _, value := range values {
		if item, ok := value.(map[string]any); ok {
			out = append(out, item)
		}
	}
	return out
}

// deletions turns what asks for a deletion into the null of a strategic merge patch.
func deletions(patch map[string]any) {
	for key, value := range patch {
		if embedded.Deletes(value) {
			patch[key] = nil
		} else if object, ok := value.(map[string]any); ok {
			deletions(object)
		}
	}
}

// merge lays a patch over what was generated. Neither becomes text on the way, and the patch must not be used afterwards.
func merge[T any](base T, patch map[string]any) (T, error) {
	var out T
	deletions(patch)
	generated, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&base)
	if err != nil {
		return out, fmt.Errorf("reading the generated object: %w", err)
	}
	merged, err := strategicpatch.StrategicMergeMapPatch(generated, patch, out)
	if err != nil {
		return out, fmt.Errorf("merging: %w", err)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(merged, &out); err != nil {
		return out, fmt.Errorf("reading the merged object: %w", err)
	}
	return out, nil
}
