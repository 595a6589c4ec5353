// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"
)

// Piece is what a user wrote, decoded once. What is empty counts as not written, see WithoutEmpty.
//
// +kubebuilder:object:generate=false
type Piece[T any] struct {
	// Value is the piece as its type; nil when nothing is written. A field that is to be deleted is not there.
	Value *T
	// Fields are the same by their names, as a patch needs them. A field that is to be deleted is marked, see Deletes. The
	// reader of a piece may change them.
	Fields map[string]any
}

// read decodes raw and complains about every field that T does not have. With such a complaint the piece has no fields.
func read[T any](raw []byte) (Piece[T], error) {
	fields, err := object(raw)
	if err != nil || fields == nil {
		return Piece[T]{}, err
	}
	if raw, err = withoutDeletions(raw, fields, reflect.TypeFor[T]()); err != nil {
		return Piece[T]{}, err
	}
	value := new(T)
	strict, err := kjson.UnmarshalStrict(raw, value)
	if err != nil {
		return Piece[T]{}, fmt.Errorf("decoding: %w", err)
	}
	if len(strict) > 0 {
		return Piece[T]{Value: value}, errors.Join(strict...)
	}
	clean(fields, reflect.TypeFor[T](), reflect.ValueOf(value).Elem())
	return Piece[T]{Value: value, Fields: fields}, nil
}

// decode is read for callers that only need the value.
func decode[T any](raw []byte) (*T, error) {
	piece, err := read[T](raw)
	return piece.Value, err
}

// object decodes a JSON object; nothing and null are nil.
func object(raw []byte) (map[string]any, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var out map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &out); err != nil {
		return nil, fmt.Errorf("decoding: %w", err)
	}
	return out, nil
}

// withoutDeletions returns a piece of type t without the fields that ask for a generated one to be deleted, which no type
// knows. fields is the piece decoded, and stays as it is.
func withoutDeletions(raw []byte, fields map[string]any, t reflect.Type) ([]byte, error) {
	if !bytes.Contains(raw, []byte(directive)) {
		return raw, nil
	}
	kept := runtime.DeepCopyJSON(fields)
	dropDeletions(kept, t)
	out, err := json.Marshal(kept)
	if err != nil {
		return nil, fmt.Errorf("encoding: %w", err)
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
