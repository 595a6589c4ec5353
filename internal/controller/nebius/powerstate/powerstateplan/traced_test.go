// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package powerstateplan

import (
	"os"
	"testing"

	"github.com/coxswain-hpc/coxswain/internal/testing/rules"
)

// TestMain runs the tests, and fails when there is a rule that none of them has reached.
func TestMain(m *testing.M) { os.Exit(rules.Main(m, lists())) }

func TestEveryListAnswersItsQuestion(t *testing.T) { rules.Complete(t, lists()) }
