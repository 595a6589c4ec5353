// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// CheckKey returns why key cannot be a key, or nil: a key consists of letters, digits, '_' and '.'.
func CheckKey(key string) error {
	if key == "" {
		return errors.New("the key is empty")
	}
	for i := range len(key) {
		if !isKeyByte(key[i]) {
			return fmt.Errorf("key %.80q has a character that is not a letter, a digit, '_' or '.'", key)
		}
	}
	return nil
}

func isKeyByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '.'
}

// CheckValue returns why value cannot be written into a configuration file such that Slurm reads the same back, or nil. Refused are
// line breaks and other control characters, what is not UTF-8, a double quote in a value with blanks, and one at the beginning. The
// error does not repeat the value, which may be a password.
func CheckValue(value string) error {
	if err := checkText(value); err != nil {
		return err
	}
	if !strings.Contains(value, `"`) {
		return nil
	}
	if value[0] == '"' {
		return errors.New("the value starts with a double quote, which Slurm would take for the start of a quoted value")
	}
	if strings.ContainsAny(value, blanks) {
		return errors.New("the value has a double quote and a blank, which Slurm cannot read together")
	}
	return nil
}

// checkItems is CheckValue for the value of a set. No item may have a double quote, since it could meet another item with
// a blank.
func checkItems(value string) error {
	if strings.Contains(value, `"`) {
		return errors.New("the items of a list cannot have double quotes")
	}
	return CheckValue(value)
}

// blanks separate what stands on a line. Other space characters are control characters, which are refused.
const blanks = " \t"

// checkText refuses what must not stand anywhere in a file. It looks at C1 controls too, since U+0085 is a line break to
// some readers.
func checkText(s string) error {
	if !utf8.ValidString(s) {
		return errors.New("the text is not UTF-8")
	}
	for _, r := range s {
		if r < ' ' && r != '\t' || r >= 0x7f && r < 0xa0 {
			return fmt.Errorf("the text has the control character %U", r)
		}
	}
	return nil
}

// quote writes a value that CheckValue accepts. Quotes do not protect '#', and a backslash takes away the meaning of the
// next character wherever it stands, so both get a backslash.
func quote(value string) string {
	if value == "" || strings.ContainsAny(value, blanks) {
		value = `"` + value + `"`
	}
	return escape(value)
}

func escape(s string) string {
	return strings.NewReplacer(`\`, `\\`, "#", `\#`).Replace(s)
}
