// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"testing"

	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
)

// The tests of Accounting, RestApi, LoginSet and Token are one package: each further test binary with an API server costs ten
// seconds of processor time.
func TestMain(m *testing.M) { apiserver.Main(m) }
