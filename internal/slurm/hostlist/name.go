// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package hostlist

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
)

// maxName is the longest name accepted, in bytes: the longest DNS name (RFC 1035).
const maxName = 253

// CheckName returns why name cannot be the name of a Slurm node, or nil if it can. A name consists of letters,
// digits, '-', '_' and '.', starts with a letter, a digit or '_', has at most 253 characters, and is neither ALL nor
// DEFAULT, which slurm.conf(5) reserves.
func CheckName(name string) error {
	switch {
	case name == "":
		return errors.New("a host name is empty")
	case len(name) > maxName:
		return fmt.Errorf("host name %.40q… is longer than %d characters", name, maxName)
	case strings.EqualFold(name, "ALL") || strings.EqualFold(name, "DEFAULT"):
		return fmt.Errorf("host name %q is a reserved word of Slurm", name)
	case name[0] == '-' || name[0] == '.':
		return fmt.Errorf("host name %q starts with %q", name, name[0])
	}
	return checkCharacters(name)
}

// checkCharacters is the part of CheckName that also holds for the pieces between brackets.
func checkCharacters(s string) error {
	for i, r := range s {
		if !isNameCharacter(r) {
			return fmt.Errorf("host name %q has %q at position %d: letters, digits, '-', '_' and '.' are allowed", s, r, i+1)
		}
	}
	return nil
}

func isNameCharacter(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.'
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// Compare orders names as people count: w2 before w10, and a number written with fewer digits before one written with
// more (w2, w10, w010). It returns -1, 0 or 1 and is a total order; 0 means the same name.
func Compare(a, b string) int {
	for a != "" && b != "" {
		if !isDigit(a[0]) || !isDigit(b[0]) {
			if a[0] != b[0] {
				return cmp.Compare(a[0], b[0])
			}
			a, b = a[1:], b[1:]
			continue
		}
		n, m := digits(a), digits(b)
		if n != m {
			return cmp.Compare(n, m)
		}
		if c := strings.Compare(a[:n], b[:n]); c != 0 {
			return c
		}
		a, b = a[n:], b[n:]
	}
	return cmp.Compare(len(a), len(b))
}

// digits counts the digits that s starts with.
func digits(s string) int {
	n := 0
	for n < len(s) && isDigit(s[n]) {
		n++
	}
	return n
}
