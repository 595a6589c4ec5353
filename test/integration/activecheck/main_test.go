// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package activecheck

import (
	"testing"

	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
)

func TestMain(m *testing.M) { apiserver.Main(m) }
