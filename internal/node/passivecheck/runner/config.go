// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/coxswain-hpc/coxswain/internal/node/passivecheck"
	"github.com/coxswain-hpc/coxswain/internal/node/passivecheck/builtin"
)

// Load reads a configuration: a file, or a directory with one file <script>.json for each check, in the order of their names. Checks
// without a mistake are returned beside the error about the others.
func Load(config string) ([]passivecheck.Check, error) {
	info, err := os.Stat(config)
	if err != nil {
		return nil, fmt.Errorf("reading the configuration of checks: %w", err)
	}
	files := []string{config}
	if info.IsDir() {
		if files, err = filesIn(config); err != nil {
			return nil, fmt.Errorf("reading the configuration of checks: %w", err)
		}
	}
	var checks []passivecheck.Check
	var mistakes []error
	for _, file := range files {
		content, err := os.ReadFile(file) //nolint:gosec // the administrator names it
		if err == nil {
			var found []passivecheck.Check
			found, err = passivecheck.Parse(content, builtin.Known)
			checks = append(checks, found...)
		}
		if err != nil {
			mistakes = append(mistakes, fmt.Errorf("reading %s: %w", file, err))
		}
	}
	return checks, errors.Join(mistakes...)
}

// filesIn returns the files of a directory that have a check, sorted.
func filesIn(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, entry := range entries {
		if filepath.Ext(entry.Name()) == ".json" {
			files = append(files, filepath.Join(dir, entry.Name()))
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s has no *.json file", dir)
	}
	return files, nil
}
