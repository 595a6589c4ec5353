// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// Bytes writes the document as a file that ends with a newline. The same entries always give the same bytes. A document that Check
// refuses is not written.
func (d *Document) Bytes() ([]byte, error) {
	if err := d.Check(); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	for _, e := range d.entries {
		e.write(&b)
	}
	return b.Bytes(), nil
}

// Check returns an error that names every entry that cannot be written such that Slurm reads it back unchanged.
func (d *Document) Check() error {
	var errs []error
	for _, e := range d.entries {
		if err := e.check(d.file); err != nil {
			errs = append(errs, fmt.Errorf("writing %s: %w", d.file, err))
		}
	}
	return errors.Join(errs...)
}

func (e Entry) check(file File) error {
	switch e.Kind {
	case Section, Comment:
		if err := checkText(e.Value); err != nil {
			return fmt.Errorf("comment: %w", err)
		}
		return nil
	case Include:
		if err := checkInclude(e.Value); err != nil {
			return fmt.Errorf("%s: %w", e.Key, err)
		}
		return nil
	case Set:
		if err := checkItems(e.Value); err != nil {
			return fmt.Errorf("%s: %w", e.Key, err)
		}
	}
	if len(e.Options) > 0 && !file.trait(e.Key).options {
		return fmt.Errorf("%s: it takes no options", e.Key)
	}
	for _, o := range e.pairs() {
		if err := CheckKey(o.Key); err != nil {
			return err
		}
		if err := CheckValue(o.Value); err != nil {
			return fmt.Errorf("%s: %w", o.Key, err)
		}
	}
	return nil
}

// pairs are all that stand on the line.
func (e Entry) pairs() []Option { return append([]Option{{e.Key, e.Value}}, e.Options...) }

// write writes an entry that check accepts.
func (e Entry) write(b *bytes.Buffer) {
	switch e.Kind {
	case Section:
		fmt.Fprintf(b, "#\n### %s ###\n", e.Value)
	case Comment:
		fmt.Fprintf(b, "# %s\n", e.Value)
	case Include:
		fmt.Fprintf(b, "%s %s\n", e.Key, escape(e.Value))
	default:
		for i, o := range e.pairs() {
			if i > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(o.Key + "=" + quote(o.Value))
		}
		b.WriteByte('\n')
	}
}

// checkInclude refuses names of files that Slurm would not read as one word.
func checkInclude(file string) error {
	if file == "" || strings.ContainsAny(file, blanks+`"`) {
		return errors.New("it takes the name of one file, without blanks and quotes")
	}
	return checkText(file)
}
