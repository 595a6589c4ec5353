// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/testing/checkout"
)

// BinaryEnv names the environment variable with the path of a hyperkube binary: one file that is etcd,
// kube-apiserver and the rest of Kubernetes by its first argument.
const BinaryEnv = "COXSWAIN_HYPERKUBE"

// Required reports whether a test without a hyperkube binary has to fail, by the environment variable COXSWAIN_REQUIRED.
func Required() bool {
	value, _ := os.LookupEnv("COXSWAIN_REQUIRED")
	return value != ""
}

// Missing returns an error with the way to get a hyperkube binary when there is none, so that tests with an API server are skipped.
func Missing() error {
	_, err := findBinary()
	return err
}

// missingBinaryError is the error that no hyperkube binary was found, with the way to get one.
type missingBinaryError struct{ looked string }

// Error implements error.
func (e *missingBinaryError) Error() string {
	return fmt.Sprintf("no hyperkube binary in %s; build it with \"make bin/localkube && bin/localkube build\" "+
		"or point %s at one", e.looked, BinaryEnv)
}

// findBinary returns the hyperkube binary: the one that the environment names, else the newest that localkube has built.
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
		// One directory per set of sources that it was built from; the file "complete" is written last.
		built := filepath.Join(cache, "coxswain", "localkube", "bin")
		complete, err := filepath.Glob(filepath.Join(built, "*", "complete"))
		if err != nil {
			return "", fmt.Errorf("looking for a hyperkube binary below %s: %w", built, err)
		}
		if len(complete) == 0 {
			return "", &missingBinaryError{looked: built}
		}
		for _, marker := range complete {
			candidates = append(candidates, filepath.Join(filepath.Dir(marker), "hyperkube"))
		}
	}
	newest, at := "", time.Time{}
	for _, path := range candidates {
		info, err := os.Stat(path)
		if err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 && info.ModTime().After(at) {
			newest, at = path, info.ModTime()
		}
	}
	if newest == "" {
		return "", &missingBinaryError{looked: strings.Join(candidates, ", ")}
	}
	return newest, nil
}

// crdDirectory returns helm/coxswain-crds/crd of this repository, or "" when it does not exist.
func crdDirectory() (string, error) {
	dir, err := checkout.Dir()
	if err != nil {
		return "", err
	}
	crds := filepath.Join(dir, "helm", "coxswain-crds", "crd")
	if _, err := os.Stat(crds); err != nil {
		return "", nil //nolint:nilerr // a tree without CRDs is a tree whose tests use core kinds only
	}
	return crds, nil
}
