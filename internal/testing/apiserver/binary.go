// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// BinaryEnv names the environment variable with the path of a hyperkube binary: one file that is etcd,
// kube-apiserver and the rest of Kubernetes by its first argument.
const BinaryEnv = "COXSWAIN_HYPERKUBE"

// missingBinaryError says that no hyperkube binary was found and how to get one.
type missingBinaryError struct{ looked []string }

// Error implements error.
func (e *missingBinaryError) Error() string {
	return fmt.Sprintf("no hyperkube binary in %s; build it with \"make bin/localkube && bin/localkube build\" "+
		"or point %s at one", strings.Join(e.looked, ", "), BinaryEnv)
}

// findBinary returns the hyperkube binary: the one that the environment names, else the one that localkube has built.
func findBinary() (string, error) {
	var candidates []string
	if path, ok := os.LookupEnv(BinaryEnv); ok && path != "" {
		// A wrong path must not fall back to another binary silently.
		candidates = []string{path}
	} else {
		cache, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("finding the user's cache directory: %w", err)
		}
		candidates = []string{filepath.Join(cache, "coxswain", "localkube", "bin", "hyperkube")}
	}
	for _, path := range candidates {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", &missingBinaryError{looked: candidates}
}

// crdDirectory returns config/crd/bases of this repository, or "" when it does not exist.
func crdDirectory() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the repository: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", fmt.Errorf("finding the repository: no go.mod above the working directory")
		}
		dir = parent
	}
	crds := filepath.Join(dir, "config", "crd", "bases")
	if _, err := os.Stat(crds); err != nil {
		return "", nil //nolint:nilerr // a tree without CRDs is a tree whose tests use core kinds only
	}
	return crds, nil
}
