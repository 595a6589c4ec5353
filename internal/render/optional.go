// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// IgnoreOptional records every reference to a key of a Secret or ConfigMap in a spec that sets "optional". What is named is needed, and
// a condition reports it when it is absent. References inside of users' containers and volumes are Kubernetes' own and keep their
// meaning.
func (o *Output) IgnoreOptional(spec any) { o.ignoreOptional(reflect.ValueOf(spec), "spec") }

func (o *Output) ignoreOptional(v reflect.Value, path string) {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return
		}
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		return
	}
	switch ref := v.Interface().(type) {
	case corev1.SecretKeySelector:
		o.Ignore(ref.Optional != nil && *ref.Optional, path+".optional")
		return
	case corev1.ConfigMapKeySelector:
		o.Ignore(ref.Optional != nil && *ref.Optional, path+".optional")
		return
	}
	for i := range v.NumField() {
		field := v.Type().Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case !field.IsExported():
		case name == "" && strings.Contains(options, "inline"):
			o.ignoreOptional(v.Field(i), path)
		default:
			o.ignoreOptional(v.Field(i), path+"."+name)
		}
	}
}
