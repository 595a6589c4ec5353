// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package overlay lays what users wrote over what Coxswain generated: containers, pod specs and Service specs. The rules
// are those of a strategic merge patch (containers, variables, ports and mounts meet by their key; null deletes), with
// four exceptions: arguments follow the generated ones, a probe with another handler replaces the generated handler but
// keeps its thresholds, a generated container keeps its name, and tolerations and search domains follow the generated
// ones, without which workers do not find each other.
package overlay

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/coxswain-hpc/coxswain/api/embedded"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/problem"
)

// ReasonInvalid is the reason of problems inside user-written pieces.
const ReasonInvalid = slinkyv1beta1.ReasonInvalidOverlay

// Container returns base with the user's container laid over it. The error is a problem.Problem at path.
func Container(base corev1.Container, user *embedded.Container, path string) (corev1.Container, error) {
	decoded, err := user.Decode()
	if err != nil {
		return base, problem.Errorf(path, ReasonInvalid, "%v", err)
	}
	if decoded == nil {
		return base, nil
	}
	if decoded.Name != "" && decoded.Name != base.Name {
		return base, problem.Errorf(path+".name", ReasonInvalid,
			"this container is called %q; leave the name out (it was %q)", base.Name, decoded.Name)
	}
	patch, err := object(user.Raw)
	if err != nil {
		return base, problem.Errorf(path, ReasonInvalid, "%v", err)
	}
	delete(patch, "args")
	replaceHandlers(patch)
	out, err := merge(base, patch)
	if err != nil {
		return base, problem.Errorf(path, ReasonInvalid, "%v", err)
	}
	out.Args = append(append([]string(nil), base.Args...), decoded.Args...)
	return out, nil
}

// PodSpec returns base with the user's pod spec laid over it. The error is a problem.Problem at path.
func PodSpec(base corev1.PodSpec, user *embedded.PodSpec, path string) (corev1.PodSpec, error) {
	decoded, err := user.Decode()
	if err != nil {
		return base, problem.Errorf(path, ReasonInvalid, "%v", err)
	}
	if decoded == nil {
		return base, nil
	}
	patch, err := object(user.Raw)
	if err != nil {
		return base, problem.Errorf(path, ReasonInvalid, "%v", err)
	}
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
	return out, nil
}

// ServiceSpec returns the user's Service spec with the generated selector and port in it. External IPs are never taken
// over: whoever may write our objects must not attract other people's traffic (CVE-2020-8554).
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

// replaceHandlers makes each probe in the patch delete the handlers that it does not name, since a probe with two
// handlers is invalid. A probe that names none only changes thresholds.
func replaceHandlers(patch map[string]any) {
	handlers := []string{"exec", "httpGet", "tcpSocket", "grpc"}
	for _, name := range []string{"startupProbe", "livenessProbe", "readinessProbe"} {
		probe, ok := patch[name].(map[string]any)
		if !ok {
			continue
		}
		named := false
		for _, h := range handlers {
			named = named || probe[h] != nil
		}
		if !named {
			continue
		}
		for _, h := range handlers {
			if probe[h] == nil {
				probe[h] = nil
			}
		}
	}
}

func merge[T any](base T, patch map[string]any) (T, error) {
	var out T
	baseJSON, err := json.Marshal(base)
	if err != nil {
		return out, fmt.Errorf("encoding the generated object: %w", err)
	}
	patchJSON, err := json.Marshal(patch)
	if err != nil {
		return out, fmt.Errorf("encoding the user's object: %w", err)
	}
	merged, err := strategicpatch.StrategicMergePatch(baseJSON, patchJSON, out)
	if err != nil {
		return out, fmt.Errorf("merging: %w", err)
	}
	if err := json.Unmarshal(merged, &out); err != nil {
		return out, fmt.Errorf("decoding the merged object: %w", err)
	}
	return out, nil
}

func object(raw []byte) (map[string]any, error) {
	out := map[string]any{}
	if err := json.Unmarshal(raw, &out); err != nil {
		return nil, fmt.Errorf("decoding: %w", err)
	}
	return out, nil
}
