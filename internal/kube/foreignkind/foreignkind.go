// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package foreignkind recognises the kinds of other operators by what they are. The name of a kind is not enough: another release of its
// operator may keep its objects in no namespace, or have other fields. Writing it all the same fails, and what relied on it does not start.
package foreignkind

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind is a kind of another operator as Coxswain writes it: in the namespace of the object that asks for it.
type Kind struct {
	schema.GroupVersionKind
	// Definition is the name of its CustomResourceDefinition.
	Definition string
	// Fields are the paths of those that are written whenever an object is, such as spec.policy. Fields of the members of a list stand
	// below the list.
	Fields []string
}

// Fit is whether a kind can be used. The zero value is a kind that is not installed.
type Fit struct {
	// Installed is true if the API server has a definition of that name.
	Installed bool
	// Misfit is why the kind that is installed cannot be used; empty if it can.
	Misfit string
}

// Usable reports whether objects of the kind can be written.
func (f Fit) Usable() bool { return f.Installed && f.Misfit == "" }

// Why returns why a kind is not usable.
func (f Fit) Why(definition string) string {
	if !f.Installed {
		return "the cluster has no CRD " + definition
	}
	return f.Misfit
}

// And returns the fit of two kinds of which one is useless without the other.
func (f Fit) And(other Fit) Fit {
	misfits := slices.DeleteFunc([]string{f.Misfit, other.Misfit}, func(s string) bool { return s == "" })
	return Fit{Installed: f.Installed && other.Installed, Misfit: strings.Join(misfits, ", and ")}
}

// Misfit returns why objects of the kind cannot be written where it has this CustomResourceDefinition; empty for no reason.
func (k Kind) Misfit(definition map[string]any) string {
	if scope, _, _ := unstructured.NestedString(definition, "spec", "scope"); scope != "Namespaced" {
		return "the objects of CRD " + k.Definition + " are in no namespace"
	}
	versions, _, _ := unstructured.NestedSlice(definition, "spec", "versions")
	var served []string
	for _, item := range versions {
		version, _ := item.(map[string]any)
		name, _ := version["name"].(string)
		if version["served"] != true {
			continue
		}
		if name == k.Version {
			return k.lacking(version)
		}
		served = append(served, name)
	}
	return "CRD " + k.Definition + " has no version " + k.Version + ", but " + strings.Join(served, " and ")
}

// lacking names the fields that a version does not have.
func (k Kind) lacking(version map[string]any) string {
	root, found, _ := unstructured.NestedMap(version, "schema", "openAPIV3Schema")
	if !found {
		return ""
	}
	lacks := slices.DeleteFunc(slices.Clone(k.Fields), func(field string) bool { return has(root, strings.Split(field, ".")) })
	if len(lacks) == 0 {
		return ""
	}
	return "CRD " + k.Definition + " has no " + strings.Join(lacks, ", no ") + " in version " + k.Version
}

// has reports whether a schema allows the field at a path.
func has(s map[string]any, path []string) bool {
	for len(path) > 0 {
		if items, isList := s["items"].(map[string]any); isList {
			s = items
			continue
		}
		properties, _ := s["properties"].(map[string]any)
		next, known := properties[path[0]].(map[string]any)
		if !known {
			return s["x-kubernetes-preserve-unknown-fields"] == true || s["additionalProperties"] != nil && s["additionalProperties"] != false
		}
		s, path = next, path[1:]
	}
	return true
}
