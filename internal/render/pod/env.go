// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// AddEnv adds an environment variable to a container, unless it has one of that name, and reports whether it did. The user's value counts.
func AddEnv(c *corev1.Container, variable corev1.EnvVar) bool {
	if slices.ContainsFunc(c.Env, func(have corev1.EnvVar) bool { return have.Name == variable.Name }) {
		return false
	}
	c.Env = append(c.Env, variable)
	return true
}

// FieldEnv returns an environment variable with the value that a field of the pod has when the container starts.
func FieldEnv(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
}
