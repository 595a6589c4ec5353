// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package config joins generated configuration files with what users add to them.
//
// A file is a conf.Document from the beginning to the end. Read parses what a user wrote, once. Only what another object
// stores is a text again: a ConfigMap, or the extraConf of a component. A document becomes a text when it is put into an
// object.
package config

import (
	"errors"

	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/slurm/conf"
)

// ReasonInvalid is the reason of problems in users' configuration texts.
const ReasonInvalid = "InvalidSpec"

// Text is what a user wrote for a file, parsed.
type Text struct {
	Document *conf.Document
	// Mistakes are the lines that the document lacks because they cannot be read.
	Mistakes []conf.Problem
	// Path is the field with the text.
	Path string
}

// Read parses the text of the field at path.
func Read(file conf.File, text, path string) Text {
	d, mistakes := conf.Parse(file, text)
	return Text{Document: d, Mistakes: mistakes, Path: path}
}

// Lay lays a user's text over base. The error joins a problem.Problem for each line that cannot be used; then do not apply the file.
// The document is nil when base itself cannot be written.
func Lay(base *conf.Document, user Text, owned conf.Owned) (*conf.Document, error) {
	// What cannot be written of base came from another field than the text.
	if err := base.Check(); err != nil {
		return nil, problem.Errorf("spec", ReasonInvalid, "%v", err)
	}
	merged, refused := conf.Merge(base, user.Document, owned)
	var errs []error
	for _, mistakes := range [][]conf.Problem{user.Mistakes, refused} {
		for _, m := range mistakes {
			errs = append(errs, problem.Errorf(user.Path, ReasonInvalid, "%s", m.Error()))
		}
	}
	return merged, errors.Join(errs...)
}
