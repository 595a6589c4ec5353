// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package overlay

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/coxswain-hpc/coxswain/api/embedded"
)

// meant are the leaves whose empty value differs from none, by the end of their paths, with the reason.
var meant = map[string]string{
	`env[].value ""`: "a variable may be empty",

	"volumes[].projected.sources[].*": "the source of a projection says by being there which one it is",
	`labelSelector {}`:                "selects everything, where none selects nothing",
	`namespaceSelector {}`:            "selects everything, where none selects the own namespace",
	`storageClassName ""`:             "no storage class, where none is the default class",
}

// required are the leaves that an item of a list must have; with an empty one the item is refused.
var required = []string{
	"ontainers[].name", "ports[].containerPort", "env[].name", "volumeMounts[].mountPath", "volumeDevices[].devicePath", "volumes[].name",
	"hostAliases[].ip", "resourceClaims[].name", "topologySpreadConstraints[].topologyKey", "imagePullSecrets[].name", "schedulingGates[].name", "evictionResponders[].name",
	"ownerReferences[].uid",
}

// TestEmptyIsAsIfNotWritten tries every leaf of what users may lay over with everything empty: the result is that of the
// same piece without the leaf.
func TestEmptyIsAsIfNotWritten(t *testing.T) {
	t.Run("Container", func(t *testing.T) {
		everyLeaf(t, func(generated corev1.Container, user []byte) (corev1.Container, error) {
			generated.Name = ""
			piece := &embedded.Container{}
			piece.Raw = user
			saysTheSame(t, piece.Read)
			return Container(generated, piece, "spec")
		}, "name")
	})
	t.Run("PodSpec", func(t *testing.T) {
		everyLeaf(t, func(generated corev1.PodSpec, user []byte) (corev1.PodSpec, error) {
			piece := &embedded.PodSpec{}
			piece.Raw = user
			saysTheSame(t, piece.Read)
			return PodSpec(generated, piece, "spec")
		}, "ephemeralContainers")
	})
	t.Run("ServiceSpec", func(t *testing.T) {
		everyLeaf(t, func(_ corev1.ServiceSpec, user []byte) (corev1.ServiceSpec, error) {
			piece := &embedded.ServiceSpec{}
			piece.Raw = user
			return ServiceSpec(piece, nil, corev1.ServicePort{Name: "generated", Port: 1}, "spec")
		}, "externalIPs")
	})
}

// saysTheSame checks that the fields of a piece, decoded again, are its value.
func saysTheSame[T any](t *testing.T, read func() (embedded.Piece[T], error)) {
	t.Helper()
	piece, err := read()
	if err != nil {
		return // the caller that lays the piece over reports it
	}
	want := new(T)
	if err := json.Unmarshal([]byte(show(piece.Fields)), want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, piece.Value); diff != "" {
		t.Errorf("the value of a piece is not what its fields say (-fields +value):\n%s", diff)
	}
}

func everyLeaf[T any](t *testing.T, lay func(T, []byte) (T, error), without ...string) {
	t.Helper()
	all, user := tree(t, full[T]("generated", 7)), tree(t, full[T]("user", 9))
	for _, name := range without {
		delete(user, name)
	}
	for _, name := range []string{"containers", "initContainers"} {
		if _, ok := user[name]; ok { // whose leaves are tried by themselves
			user[name] = []any{map[string]any{"name": "same", "image": "user", "args": []any{"user"}, "resources": map[string]any{"limits": map[string]any{"key": "9"}}}}
		}
	}
	tried, used := 0, map[string]bool{}
	for _, path := range leaves("", user) {
		if slices.ContainsFunc(required, func(end string) bool { return strings.HasSuffix(path, end) }) {
			continue
		}
		user, generated := narrow(user, path), *new(T)
		if err := json.Unmarshal([]byte(show(narrow(all, path))), &generated); err != nil {
			t.Fatal(err)
		}
		want, err := lay(generated, changed(t, user, path, absent))
		if err != nil {
			t.Fatalf("without %s: %v", path, err)
		}
		for _, empty := range []any{nil, "", 0, []any{}, map[string]any{}} {
			if !fits(at(user, path), empty) {
				continue
			}
			tried++
			what := fmt.Sprintf("%s %s", path, show(empty))
			got, err := lay(generated, changed(t, user, path, empty))
			if err != nil {
				t.Errorf("%s is refused: %v", what, err)
				continue
			}
			same := cmp.Equal(want, got)
			switch reason := exception(reflect.TypeFor[T](), path, what, empty); {
			case reason == "" && !same:
				t.Errorf("%s is not as if it were not written (-without +with):\n%s", what, cmp.Diff(want, got))
			case reason != "" && !same:
				used[reason] = true
			}
		}
	}
	t.Logf("%d leaves and values, exceptions: %q", tried, slices.Sorted(maps.Keys(used)))
	if tried < 30 {
		t.Errorf("only %d leaves and values were tried", tried)
	}
}

// exception is the reason for which this empty value may mean something.
func exception(t reflect.Type, path, what string, empty any) string {
	if empty == 0 && typeAt(t, path).Kind() == reflect.Pointer {
		return "the type tells 0 from none"
	}
	if i := strings.LastIndex(path, "."); empty == "" && i > 0 && typeAt(t, path[:i]).Kind() == reflect.Map {
		return "the value of a label may be empty"
	}
	for end, reason := range meant {
		parent, member, _ := strings.Cut(end, "*")
		switch {
		case strings.HasSuffix(what, end):
			return reason
		case member == "" && parent != end && empty != nil && strings.HasSuffix(path[:strings.LastIndex(path, ".")+1], parent):
			if _, object := empty.(map[string]any); object {
				return reason
			}
		}
	}
	return ""
}

// narrow is the part of an object that leads to a leaf, with the merge keys of items of lists.
func narrow(object map[string]any, path string) map[string]any {
	step, rest, deeper := strings.Cut(path, ".")
	name, inList := strings.CutSuffix(step, "[]")
	out := map[string]any{}
	for _, key := range []string{"name", "containerPort", "mountPath", "devicePath", "ip", "topologyKey", "uid"} {
		if value, ok := object[key]; ok {
			out[key] = value
		}
	}
	out[name] = object[name]
	switch value := object[name].(type) {
	case map[string]any:
		if deeper {
			out[name] = narrow(value, rest)
		}
	case []any:
		if inList {
			out[name] = []any{narrow(value[0].(map[string]any), rest)}
		}
	}
	return out
}

// typeAt is the type of a field, with a pointer if it is one.
func typeAt(t reflect.Type, path string) reflect.Type {
	for step := range strings.SplitSeq(strings.ReplaceAll(path, "[]", ""), ".") {
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
			t = t.Elem()
		}
		if t.Kind() == reflect.Map {
			t = t.Elem()
			continue
		}
		field, _ := t.FieldByNameFunc(func(name string) bool {
			f, _ := t.FieldByName(name)
			tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			return tag == step
		})
		t = field.Type
	}
	return t
}

type missing struct{}

var absent = missing{}

// full is a T in which every field has a value. The merge keys of lists are the same in all.
func full[T any](text string, number int64) T {
	var out T
	fill(reflect.ValueOf(&out).Elem(), "", text, number)
	return out
}

func fill(v reflect.Value, field, text string, number int64) {
	switch v.Interface().(type) {
	case resource.Quantity:
		v.Set(reflect.ValueOf(*resource.NewQuantity(number, resource.DecimalSI)))
		return
	case intstr.IntOrString:
		v.Set(reflect.ValueOf(intstr.FromInt32(int32(number))))
		return
	case metav1.Time, []metav1.ManagedFieldsEntry:
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), field, text, number)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), v.Type().Field(i).Name, text, number)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), field, text, number)
	case reflect.Map:
		item := reflect.New(v.Type().Elem()).Elem()
		fill(item, field, text, number)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("key").Convert(v.Type().Key()), item)
	case reflect.String:
		if slices.Contains([]string{"Name", "MountPath", "DevicePath", "IP", "TopologyKey", "Protocol", "WhenUnsatisfiable"}, field) {
			text = "same"
		}
		v.SetString(text)
	case reflect.Int32, reflect.Int64:
		if field == "ContainerPort" {
			number = 1
		}
		v.SetInt(number)
	case reflect.Uint8:
		v.SetUint(uint64(number))
	case reflect.Bool:
		v.SetBool(text == "generated")
	default:
		panic("no value for " + v.Kind().String())
	}
}

func tree(t *testing.T, value any) map[string]any {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]any{}
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// leaves are the paths of everything below an object: fields, objects and lists.
func leaves(prefix string, object map[string]any) []string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(object)) {
		path := prefix + key
		out = append(out, path)
		switch value := object[key].(type) {
		case map[string]any:
			out = append(out, leaves(path+".", value)...)
		case []any:
			if item, ok := value[0].(map[string]any); ok {
				out = append(out, leaves(path+"[].", item)...)
			}
		}
	}
	return out
}

// at is the value of a path.
func at(object map[string]any, path string) any {
	parent, key := holder(object, path)
	return parent[key]
}

func holder(object map[string]any, path string) (map[string]any, string) {
	steps := strings.Split(path, ".")
	for _, step := range steps[:len(steps)-1] {
		name, inList := strings.CutSuffix(step, "[]")
		if inList {
			object = object[name].([]any)[0].(map[string]any)
		} else {
			object = object[name].(map[string]any)
		}
	}
	return object, steps[len(steps)-1]
}

// changed is an object in which one leaf has another value.
func changed(t *testing.T, object map[string]any, path string, value any) []byte {
	t.Helper()
	copied := tree(t, object)
	parent, key := holder(copied, path)
	if value == absent {
		delete(parent, key)
	} else {
		parent[key] = value
	}
	text, err := json.Marshal(copied)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// fits reports whether an empty value is of the type of a leaf.
func fits(full, empty any) bool {
	if empty == nil {
		return true
	}
	if full == "7" || full == "9" {
		return false // a quantity, of which "" is none
	}
	if _, number := full.(float64); number {
		return empty == 0
	}
	return reflect.TypeOf(full) == reflect.TypeOf(empty)
}

func show(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
