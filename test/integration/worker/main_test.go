// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"testing"

	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
)

// Most tests of this package are the rows of the table "When something fails" of docs/users/workers.md, by the names of the rows.
func TestMain(m *testing.M) { apiserver.Main(m) }
