// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// IgnoreLeaving returns nil when err is only about a namespace that is being deleted, in which the server creates no more objects.
// There is nothing left to do but to see the owners go as well. An error with any other part comes back whole.
func IgnoreLeaving(err error) error {
	if err != nil && onlyLeaving(err) {
		return nil
	}
	return err
}

func onlyLeaving(err error) bool {
	switch wrapper := err.(type) { //nolint:errorlint // looks at each wrapper by itself, since a join has to hold in all its parts
	case interface{ Unwrap() []error }:
		for _, part := range wrapper.Unwrap() {
			if !onlyLeaving(part) {
				return false
			}
		}
		return true
	case interface{ Unwrap() error }:
		if inner := wrapper.Unwrap(); inner != nil {
			return onlyLeaving(inner)
		}
	}
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}
