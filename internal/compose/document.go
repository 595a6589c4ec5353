// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"strconv"

	"github.com/coxswain-hpc/coxswain/internal/slurm/conf"
)

// document is a configuration file whose values come from fields. Each is checked where it is set. So a problem with a value
// names the field that the value comes from.
type document struct {
	*findings
	*conf.Document
}

// set puts Key=Value into the document if it can be written.
func (d *document) set(key, value, path string, options ...conf.Option) {
	trial := conf.New(d.File())
	trial.Add(key, value, options...)
	if err := trial.Check(); err != nil {
		d.fail(path, "%v", err)
		return
	}
	for _, m := range trial.CheckValues("") {
		d.fail(path, "%s: %s", m.Key, m.Message)
	}
	for _, u := range trial.Unknown("") {
		if u.Meant != "" {
			d.fail(path, "%s: %s", u.Key, u.Message)
		}
	}
	d.Add(key, value, options...)
}

// text is set for a value that is left out when empty.
func (d *document) text(key, value, path string) {
	if value != "" {
		d.set(key, value, path)
	}
}

// number is set for a value that is left out when nil.
func (d *document) number(key string, value *int32, path string) {
	if value != nil {
		d.set(key, strconv.Itoa(int(*value)), path)
	}
}

// positive is set for a value whose zero is Slurm's default.
func (d *document) positive(key string, value int32, path string) {
	if value > 0 {
		d.set(key, strconv.Itoa(int(value)), path)
	}
}

// parse reads a text that a user wrote in a field.
func (f *findings) parse(file conf.File, text, path string) *conf.Document {
	parsed, mistakes := conf.Parse(file, text)
	for _, m := range mistakes {
		f.fail(path, "%s", m.Error())
	}
	return parsed
}
