// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package config joins generated configuration files with what users add to them.
package config

import (
	"errors"

	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/slurm/conf"
)

// ReasonInvalid is the reason of problems in users' configuration texts.
const ReasonInvalid = "InvalidSpec"

// Merge lays the user's text, found at path, over base and returns the file. The error joins a problem.Problem for each
// line that cannot be used; the file is then not to be applied.
func Merge(base *conf.Document, text string, owned conf.Owned, path string) ([]byte, error) {
	merged, err := Lay(base, text, owned, path)
	if merged == nil {
		return nil, err
	}
	data, writeErr := merged.Bytes()
	if writeErr != nil {
		err = errors.Join(err, problem.Errorf(path, ReasonInvalid, "%v", writeErr))
	}
	return data, err
}

// Lay is Merge for a caller that goes on with the document. It is nil when base itself cannot be written.
func Lay(base *conf.Document, text string, owned conf.Owned, path string) (*conf.Document, error) {
	// What cannot be written of base came from another field than the text.
	if _, err := base.Bytes(); err != nil {
		return nil, problem.Errorf("spec", ReasonInvalid, "%v", err)
	}
	user, mistakes := conf.Parse(base.File(), text)
	merged, refused := conf.Merge(base, user, owned)
	var errs []error
	for _, m := range append(mistakes, refused...) {
		errs = append(errs, problem.Errorf(path, ReasonInvalid, "%s", m.Error()))
	}
	return merged, errors.Join(errs...)
}
