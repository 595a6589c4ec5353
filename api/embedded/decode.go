// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"
)

// decode reads raw as a T and complains about every field that T does not have. Nothing written is a nil T. What is empty
// counts as not written, and a field that is to be deleted is not there.
func decode[T any](raw []byte) (*T, error) {
	raw, err := withoutDeletions(raw, reflect.TypeFor[T]())
	if err != nil {
		return nil, err
	}
	written, err := Fields[T](raw)
	if err != nil || written == nil {
		return nil, err
	}
	out := new(T)
	strict, err := kjson.UnmarshalStrict(raw, out)
	if err != nil {
		return nil, fmt.Errorf("decoding: %w", err)
	}
	if len(strict) > 0 {
		return out, errors.Join(strict...)
	}
	said, err := json.Marshal(written)
	if err != nil {
		return nil, fmt.Errorf("decoding: %w", err)
	}
	out = new(T)
	if err := json.Unmarshal(said, out); err != nil {
		return nil, fmt.Errorf("decoding: %w", err)
	}
	return out, nil
}

// From keeps value as raw JSON, for code that builds Coxswain's objects: embedded.Container{RawExtension:
// embedded.From(corev1.Container{…})}. It panics when value cannot be encoded, which no core type can bring about.
func From(value any) runtime.RawExtension {
	raw, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("encoding %T: %v", value, err))
	}
	return runtime.RawExtension{Raw: raw}
}
