// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"encoding/json"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// WithoutEmpty removes from a piece of type T, decoded from JSON, what clients write without a meaning. Programs with Go
// types and charts write null, "", 0, [] and {} for fields that nobody has filled in. The piece then means the same as one
// without these fields. What is empty on purpose stays: items of lists, values of maps and variables, and the objects and
// texts of meantEmpty. So does a zero that T distinguishes from an absent one: one behind a pointer.
func WithoutEmpty[T any](written map[string]any) {
	clean(written, reflect.TypeFor[T](), reflect.Value{})
}

// Deletes reports whether the value of a field asks for the generated one to be deleted: {"$patch": "delete"}, as in a
// strategic merge patch. It is for objects outside of lists: probes, a lifecycle, a security context.
func Deletes(value any) bool {
	object, ok := value.(map[string]any)
	return ok && len(object) == 1 && object[directive] == "delete"
}

const directive = "$patch"

func dropDeletions(written map[string]any, t reflect.Type) {
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		inner := field.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		object, ok := written[name].(map[string]any)
		switch {
		case inner.Kind() != reflect.Struct || encodesItself(inner):
		case name == "" && field.Anonymous:
			dropDeletions(written, inner)
		case ok && Deletes(object):
			delete(written, name)
		case ok:
			dropDeletions(object, inner)
		}
	}
}

// clean is WithoutEmpty for a piece of type t and for the same piece decoded as t, unless decoded is the zero Value.
func clean(written map[string]any, t reflect.Type, decoded reflect.Value) {
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		inside := reflect.Value{}
		if decoded.IsValid() {
			inside = decoded.FieldByIndex(field.Index)
		}
		if name == "" && field.Anonymous {
			clean(written, field.Type, inside)
			continue
		}
		value, present := written[name]
		if !present {
			continue
		}
		cleanValue(value, field.Type, inside)
		if saysNothing(value, field.Type) && !meantEmpty(t, field, value) {
			delete(written, name)
			if inside.IsValid() {
				inside.SetZero()
			}
		}
	}
}

// cleanValue is clean for what is inside of a value of type t.
func cleanValue(value any, t reflect.Type, decoded reflect.Value) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
		if decoded.IsValid() {
			decoded = decoded.Elem()
		}
	}
	switch value := value.(type) {
	case map[string]any:
		switch {
		case encodesItself(t):
		case t.Kind() == reflect.Struct:
			clean(value, t, decoded)
		case t.Kind() == reflect.Map:
			cleanMap(value, t, decoded)
		}
	case []any:
		if t.Kind() != reflect.Slice {
			return
		}
		for i := range value {
			item := reflect.Value{}
			if decoded.IsValid() {
				item = decoded.Index(i)
			}
			cleanValue(value[i], t.Elem(), item)
		}
	}
}

// cleanMap removes the keys without a value from a map of type t.
func cleanMap(written map[string]any, t reflect.Type, decoded reflect.Value) {
	for key, item := range written {
		if item != nil {
			continue
		}
		delete(written, key)
		if decoded.IsValid() {
			decoded.SetMapIndex(reflect.ValueOf(key).Convert(t.Key()), reflect.Value{})
		}
	}
}

// saysNothing reports whether a value of a field of type t means the same as an absent field.
func saysNothing(value any, t reflect.Type) bool {
	switch value := value.(type) {
	case nil:
		return true
	case string:
		return value == ""
	case int64:
		return value == 0 && t.Kind() != reflect.Pointer
	case float64:
		return value == 0 && t.Kind() != reflect.Pointer
	case json.Number: // which those decode to who keep numbers as they are written
		number, err := value.Float64()
		return err == nil && number == 0 && t.Kind() != reflect.Pointer
	case map[string]any:
		return len(value) == 0
	case []any:
		return len(value) == 0
	default:
		return false
	}
}

// meantEmpty reports whether an empty value of a field differs from none. A source of a volume or of a variable, and the
// handler of a probe, are chosen by being there. A selector without terms selects everything. A variable may be
// empty, and a claim of no storage class is not one of the default class.
func meantEmpty(owner reflect.Type, field reflect.StructField, value any) bool {
	switch value.(type) {
	case map[string]any:
		switch owner {
		case reflect.TypeFor[corev1.VolumeSource](), reflect.TypeFor[corev1.VolumeProjection](), reflect.TypeFor[corev1.EnvVarSource](),
			reflect.TypeFor[corev1.ProbeHandler](), reflect.TypeFor[corev1.LifecycleHandler]():
			return true
		}
		return field.Type == reflect.TypeFor[*metav1.LabelSelector]()
	case string:
		return owner == reflect.TypeFor[corev1.EnvVar]() && field.Name == "Value" ||
			owner == reflect.TypeFor[corev1.PersistentVolumeClaimSpec]() && field.Name == "StorageClassName"
	default:
		return false
	}
}

func encodesItself(t reflect.Type) bool {
	marshaler := reflect.TypeFor[json.Marshaler]()
	return t.Implements(marshaler) || reflect.PointerTo(t).Implements(marshaler)
}
