// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package checkout finds the repository that a test runs in.
package checkout

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Dir returns the root of the repository: the nearest directory with a go.mod, from the working directory upwards.
func Dir() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the repository: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("finding the repository: no go.mod above the working directory")
		}
		dir = parent
	}
}
