// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package hostlist

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestSetOperations(t *testing.T) {
	a, b := SetOf("w1", "w2", "w10"), SetOf("w2", "x")
	tests := []struct {
		name string
		got  Set
		want string
	}{
		{"a union has the names of both", a.Union(b), "w[1-2,10],x"},
		{"a difference lacks those of the other", a.Difference(b), "w[1,10]"},
		{"an intersection has the common ones", a.Intersection(b), "w2"},
		{"the operands are left alone", a, "w[1-2,10]"},
		{"the zero value is empty", Set(nil).Union(nil), ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.got.String(); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	if diff := cmp.Diff([]string{"w1", "w2", "w10"}, a.Sorted()); diff != "" {
		t.Errorf("Sorted is not in natural order: %s", diff)
	}
	if !a.Contains("w1") || a.Contains("w3") || a.Len() != 3 {
		t.Error("Contains or Len is wrong")
	}
}

func TestParseSetRefusesTooManyNames(t *testing.T) {
	if _, err := ParseSet("a[1-11]", 10); err == nil {
		t.Error("no error")
	}
	got, err := ParseSet("a[1-3],a2", 10)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(SetOf("a1", "a2", "a3"), got); diff != "" {
		t.Error(diff)
	}
}

func TestSetAlgebra(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := SetOf(rapid.SliceOf(aName()).Draw(t, "a")...)
		b := SetOf(rapid.SliceOf(aName()).Draw(t, "b")...)
		if got := a.Difference(b).Union(a.Intersection(b)); !cmp.Equal(got, a) {
			t.Fatalf("a-b + a*b is %v, a is %v", got, a)
		}
		if got, want := a.Union(b).Len(), a.Len()+b.Len()-a.Intersection(b).Len(); got != want {
			t.Fatalf("the union has %d names, want %d", got, want)
		}
	})
}
