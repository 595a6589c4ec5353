// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

// references are the Secrets and ConfigMaps that objects name, by kind and name, and whether they have to be there.
type references map[string]map[string]bool

func newReferences() references {
	return references{"Secret": {}, "ConfigMap": {}}
}

func (r references) add(kind, name string) {
	if name != "" {
		r[kind][name] = true
	}
}

// perhaps adds one that need not be there.
func (r references) perhaps(kind, name string) {
	if _, named := r[kind][name]; !named {
		r[kind][name] = false
	}
}

// names returns the names of a kind, sorted.
func (r references) names(kind string) []string { return slices.Sorted(maps.Keys(r[kind])) }

// of adds what an object names, and the Secrets whose names follow from its own.
func (r references) of(u *unstructured.Unstructured) error {
	r.walk("", u.Object["spec"])
	switch u.GroupVersionKind() {
	case slinkyv1beta1.GroupVersion.WithKind("Controller"):
		return typed(u, func(c *slinkyv1beta1.Controller) {
			r.add("Secret", c.AuthSlurmRef().Name)
			r.add("Secret", c.AuthJwtRef().Name)
		})
	case slinkyv1beta1.GroupVersion.WithKind("Accounting"):
		return typed(u, func(a *slinkyv1beta1.Accounting) {
			r.add("Secret", a.AuthSlurmRef().Name)
			r.add("Secret", a.AuthJwtRef().Name)
			if ref := a.DatabasePasswordRef(); ref != nil {
				r.add("Secret", ref.Name)
			}
		})
	case slinkyv1beta1.GroupVersion.WithKind("LoginSet"):
		return typed(u, func(l *slinkyv1beta1.LoginSet) { r.add("Secret", l.SSHHostKeysName()) })
	case slinkyv1beta1.GroupVersion.WithKind("NodeSet"):
		return typed(u, func(n *slinkyv1beta1.NodeSet) {
			if n.Spec.SSH.Enabled { // else the user has mounted other ones
				r.perhaps("Secret", n.SSHHostKeysName())
			}
		})
	}
	return nil
}

// typed reads an object as its type.
func typed[T any](u *unstructured.Unstructured, use func(*T)) error {
	var o T
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &o); err != nil {
		return fmt.Errorf("reading %s %s: %w", u.GetKind(), u.GetName(), err)
	}
	use(&o)
	return nil
}

// kindNamed returns the kind that a field names, by the name of the field: Secret, ConfigMap or none.
func kindNamed(field string) string {
	switch field {
	case "secret", "secretName", "secretRef", "secretKeyRef", "passwordSecretKeyRef", "passwordKeyRef", "slurmKeyRef", "jwtKeyRef", "jwtHs256KeyRef",
		"keyRef", "sssdConfRef", "clientCertificateRef", "imagePullSecrets", "sshdKeysName", "serverCASecretRef", "clientCertSecretRef", "sssdConfSecretRefName":
		return "Secret"
	case "configMap", "configMapRef", "configMapKeyRef", "jwksKeyRef", "sshdConfigRef", "configMapRefSshd", "configMapRefSupervisord", "sbatchScriptRefName":
		return "ConfigMap"
	}
	if strings.HasSuffix(field, "ConfigMapRefName") || strings.HasSuffix(field, "FileRefs") || strings.HasSuffix(field, "ScriptRefs") {
		return "ConfigMap"
	}
	return ""
}

// walk adds what a field names, and what fields in it do.
func (r references) walk(field string, value any) {
	kind := kindNamed(field)
	switch v := value.(type) {
	case string:
		if kind != "" {
			r.add(kind, v)
		}
	case []any:
		for _, item := range v {
			if _, ok := item.(string); !ok {
				r.walk(field, item)
			}
		}
	case map[string]any:
		if name, ok := v["name"].(string); ok && kind != "" {
			r.add(kind, name)
		}
		for name, inner := range v {
			r.walk(name, inner)
		}
	}
}
