// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1_test

import (
	"sync"
	"testing"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/crdcheck"
)

var (
	loading     sync.Once
	definitions map[string]*crdcheck.CRD
)

// loadCRDs returns the definitions of this group, by kind. Compiling their rules takes a while, so it is done once.
func loadCRDs(t testing.TB) map[string]*crdcheck.CRD {
	t.Helper()
	loading.Do(func() { definitions = crdcheck.Load(t, slinkyv1beta1.GroupVersion.Group) })
	return definitions
}
