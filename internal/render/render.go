// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package render is the common part of the packages below it, each of which turns one component object and the facts
// about it into Kubernetes objects. Rendering is pure: no client, no context, no clock. The same input gives the same
// bytes, so that a digest of the output says whether anything changed.
package render

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/coxswain-hpc/coxswain/internal/problem"
)

// Object is a typed Kubernetes object.
type Object interface {
	metav1.Object
	runtime.Object
}

// Output is what a component needs to exist.
type Output struct {
	// Objects in the order in which they are applied: what others mount comes first.
	Objects []Object
	// Problems are the user's mistakes. With any, Objects must not be applied: a half-applied change is worse than none.
	Problems problem.List
	// Ignored are the paths of fields that are set but have no effect in this version.
	Ignored []string
}

// Add appends objects.
func (o *Output) Add(objects ...Object) { o.Objects = append(o.Objects, objects...) }

// Fail records err, when there is one. Whatever in it is not a problem is a defect of ours and is recorded as one at path.
func (o *Output) Fail(path string, err error) {
	problems, rest := problem.FromError(err)
	o.Problems = append(o.Problems, problems...)
	if rest != nil {
		o.Problems = append(o.Problems, problem.Errorf(path, "InvalidSpec", "%v", rest))
	}
}

// Ignore records that a field is set and has no effect.
func (o *Output) Ignore(set bool, path string) {
	if set {
		o.Ignored = append(o.Ignored, path)
	}
}
