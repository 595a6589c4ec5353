// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package kubesim

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// fieldManagers are the owners of the fields of one kind, for the object and its status apart.
type fieldManagers struct {
	converter managedfields.TypeConverter
	gvk       schema.GroupVersionKind
	made      map[string]*managedfields.FieldManager
}

func (f *fieldManagers) of(subresource string) (*managedfields.FieldManager, error) {
	if m := f.made[subresource]; m != nil {
		return m, nil
	}
	m, err := managedfields.NewDefaultCRDFieldManager(f.converter, identity{}, identity{}, identity{}, f.gvk, f.gvk.GroupVersion(), subresource, nil)
	if err != nil {
		return nil, fmt.Errorf("making the field manager of %s: %w", f.gvk, err)
	}
	if f.made == nil {
		f.made = map[string]*managedfields.FieldManager{}
	}
	f.made[subresource] = m
	return m, nil
}

// newConverter returns a converter with the merge keys of Kubernetes' own kinds; lists of others are replaced as a whole.
func newConverter(scheme *runtime.Scheme) managedfields.TypeConverter {
	return converter{
		scheme: clientgoscheme.Scheme, known: applyconfigurations.NewTypeConverter(scheme), deduced: managedfields.NewDeducedTypeConverter(),
	}
}

type converter struct {
	scheme         *runtime.Scheme
	known, deduced managedfields.TypeConverter
}

// ObjectToTyped is part of managedfields.TypeConverter.
func (c converter) ObjectToTyped(obj runtime.Object, options ...typed.ValidationOptions) (*typed.TypedValue, error) {
	if c.scheme.Recognizes(obj.GetObjectKind().GroupVersionKind()) {
		return c.known.ObjectToTyped(obj, options...)
	}
	return c.deduced.ObjectToTyped(obj, options...)
}

// TypedToObject is part of managedfields.TypeConverter.
func (c converter) TypedToObject(value *typed.TypedValue) (runtime.Object, error) {
	return c.deduced.TypedToObject(value)
}

// identity converts nothing: there is one version of each kind, and no defaults.
type identity struct{}

// Convert is part of runtime.ObjectConvertor.
func (identity) Convert(_, _, _ any) error {
	return fmt.Errorf("converting between versions: there is only one")
}

// ConvertToVersion is part of runtime.ObjectConvertor.
func (identity) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}

// ConvertFieldLabel is part of runtime.ObjectConvertor.
func (identity) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

// Default is part of runtime.ObjectDefaulter.
func (identity) Default(runtime.Object) {}

// New is part of runtime.ObjectCreater.
func (identity) New(gvk schema.GroupVersionKind) (runtime.Object, error) {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(gvk)
	return obj, nil
}
