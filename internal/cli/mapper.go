// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	corev1 "k8s.io/api/core/v1"
)

// newMapper maps the kinds of a scheme to resources without asking the API server, which would take several requests. All kinds that are
// read here are in a namespace, but for some of group core.
func newMapper(scheme *runtime.Scheme) meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	for kind := range scheme.AllKnownTypes() {
		scope := meta.RESTScopeNamespace
		if kind.Group == corev1.GroupName && (kind.Kind == "Node" || kind.Kind == "Namespace" || kind.Kind == "PersistentVolume") {
			scope = meta.RESTScopeRoot
		}
		mapper.Add(kind, scope)
	}
	return mapper
}
