// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package crdcheck

import "reflect"

// Scribble overwrites everything that can be reached from a pointer. A deep copy made before must not notice.
func Scribble(object any) { scribble(reflect.ValueOf(object)) }

func scribble(v reflect.Value) {
	switch v.Kind() { //nolint:exhaustive // the kinds that API types are made of
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			scribble(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				scribble(v.Field(i))
			}
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			scribble(v.Index(i))
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			v.SetMapIndex(key, reflect.Zero(v.Type().Elem()))
		}
	case reflect.String:
		if v.CanSet() {
			v.SetString("scribble")
		}
	case reflect.Bool:
		if v.CanSet() {
			v.SetBool(!v.Bool())
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		if v.CanSet() {
			v.SetInt(v.Int() + 1)
		}
	case reflect.Uint8:
		if v.CanSet() {
			v.SetUint('x')
		}
	}
}
