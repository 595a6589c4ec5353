// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package render is the common part of the packages below it, each of which turns one component object and the facts
// about it into Kubernetes objects. Rendering is pure: no client, no context, no clock. The same input gives the same
// bytes, so that a digest of the output shows whether anything changed.
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
	// Secrets with generated keys. They are made before everything else, and whatever the problems are.
	Secrets []Secret
	// Problems are the user's mistakes. With any, Objects must not be applied: a half-applied change is worse than none.
	Problems problem.List
	// Ignored are the paths of fields that are set but have no effect in this version.
	Ignored []string
}

// Add appends objects.
func (o *Output) Add(objects ...Object) { o.Objects = append(o.Objects, objects...) }

// Fail records err, when there is one. A part of it that is not a problem is a defect of ours and is recorded as a problem at path.
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

// Generated is how the value of a generated key comes to be.
type Generated string

// The ways in which values of keys are generated.
const (
	// RandomBytes are 1024 random bytes, as many as Slurm's documentation uses for a key.
	RandomBytes Generated = "RandomBytes"
	// RandomText is a random text of letters and digits, with 130 bits.
	RandomText Generated = "RandomText"
	// SlurmKey is an auth/slurm key of 1024 random bytes, and beside it the set of keys that consists of it.
	SlurmKey Generated = "SlurmKey"
	// SSHHostKeys are the host keys of an sshd, see sshd_config(5) HostKey; they have names of their own.
	SSHHostKeys Generated = "SSHHostKeys"
)

// Secret is a Secret that has to exist with generated keys. What exists is never changed: running daemons hold these keys. It belongs
// to every object that asks for it, and is deleted with the last of them (docs/decisions/006-generated-keys.md).
type Secret struct {
	Name string
	// Key is the key that is generated, and Set, for a SlurmKey, that of the set of keys.
	Key, Set string
	Content  Generated
	// Labels and Annotations are given to it when it is made.
	Labels, Annotations map[string]string
	// Unowned is true if the Secret has no owner: only a user deletes it, by hand.
	Unowned bool
}

// Ensure records that a Secret has to exist, if its keys are generated and not the user's own.
func (o *Output) Ensure(generated bool, s Secret) {
	if generated {
		o.Secrets = append(o.Secrets, s)
	}
}
