// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Fields returns what is written in a piece of type T, without what says nothing: see WithoutEmpty. Nothing written is nil.
func Fields[T any](raw []byte) (map[string]any, error) {
	written, err := object(raw)
	if err == nil {
		WithoutEmpty[T](written)
	}
	return written, err
}

// object reads a JSON object; nothing and null are nil. Numbers stay as they are written.
func object(raw []byte) (map[string]any, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var out map[string]any
	if err := decoder.Decode(&out); err != nil {
		return nil, fmt.Errorf("decoding: %w", err)
	}
	return out, nil
}

// WithoutEmpty removes from a piece of type T, decoded from JSON, what clients write who mean nothing by it. Programs with Go
// types and charts write null, "", 0, [] and {} for fields that nobody has filled in. The piece then means the same as one
// without these fields. What is empty on purpose stays: items of lists, values of maps and variables, a zero that T tells
// from an absent one (a pointer), and the objects and texts of meantEmpty.
func WithoutEmpty[T any](written map[string]any) { fieldsWithoutEmpty(written, reflect.TypeFor[T]()) }

// Deletes says whether the value of a field asks for the generated one to be deleted: {"$patch": "delete"}, as in a
// strategic merge patch. It is for objects outside of lists: probes, a lifecycle, a security context.
func Deletes(value any) bool {
	object, ok := value.(map[string]any)
	return ok && len(object) == 1 && object[directive] == "delete"
}

const directive = "$patch"

// withoutDeletions returns a piece of type t without the fields that ask for a generated one to be deleted, which no type
// knows.
func withoutDeletions(raw []byte, t reflect.Type) ([]byte, error) {
	if !bytes.Contains(raw, []byte(directive)) {
		return raw, nil
	}
	written, err := object(raw)
	if err != nil {
		return nil, err
	}
	dropDeletions(written, t)
	out, err := json.Marshal(written)
	if err != nil {
		return nil, fmt.Errorf("encoding: %w", err)
	}
	return out, nil
}

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

func fieldsWithoutEmpty(written map[string]any, t reflect.Type) {
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" && field.Anonymous {
			fieldsWithoutEmpty(written, field.Type)
			continue
		}
		value, present := written[name]
		if !present {
			continue
		}
		value = valueWithoutEmpty(value, field.Type)
		if saysNothing(value, field.Type) && !meantEmpty(t, field, value) {
			delete(written, name)
			continue
		}
		written[name] = value
	}
}

// valueWithoutEmpty cleans what is inside of a value of type t.
func valueWithoutEmpty(value any, t reflect.Type) any {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch value := value.(type) {
	case map[string]any:
		switch {
		case encodesItself(t):
		case t.Kind() == reflect.Struct:
			fieldsWithoutEmpty(value, t)
		case t.Kind() == reflect.Map:
			for key, item := range value {
				if item == nil {
					delete(value, key)
				}
			}
		}
		return value
	case []any:
		if t.Kind() != reflect.Slice {
			return value
		}
		for i := range value {
			value[i] = valueWithoutEmpty(value[i], t.Elem())
		}
		return value
	default:
		return value
	}
}

// saysNothing says whether a value of a field of type t is what an absent field is.
func saysNothing(value any, t reflect.Type) bool {
	switch value := value.(type) {
	case nil:
		return true
	case string:
		return value == ""
	case json.Number:
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

// meantEmpty says whether an empty value of a field is another one than none. A source of a volume or of a variable, and the
// handler of a probe, say by being there which one it is. A selector without terms selects everything. A variable may be
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
