// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package mount

import (
	"fmt"
	"strings"
)

// Expand replaces $NAME and ${NAME} by the values that lookup returns, and reports an error that names the first variable that is not set.
// Nothing else is expanded: no command runs. What was not checked before a variable had its value is checked now.
func Expand(mounts []Mount, lookup func(name string) (value string, set bool)) ([]Mount, error) {
	var expanded []Mount
	for _, m := range mounts {
		made, err := m.expand(lookup)
		if err != nil {
			return nil, fmt.Errorf("could not add mount entry: %s: %w", m, err)
		}
		expanded = appendNew(expanded, made)
	}
	return expanded, nil
}

// expand replaces the variables of one entry.
func (m Mount) expand(lookup func(string) (string, bool)) (Mount, error) {
	made := Mount{Kind: m.Kind, Flags: make([]string, len(m.Flags))}
	texts, results := append([]string{m.Source, m.Target}, m.Flags...), append([]*string{&made.Source, &made.Target}, pointers(made.Flags)...)
	changed := false
	for i, text := range texts {
		value, err := replace(text, lookup)
		if err != nil {
			return Mount{}, err
		}
		*results[i], changed = value, changed || value != text
	}
	if !changed {
		return made, nil
	}
	return made, made.checkValues()
}

// pointers returns where the elements of a list are.
func pointers(list []string) []*string {
	out := make([]*string, len(list))
	for i := range list {
		out[i] = &list[i]
	}
	return out
}

// checkValues checks an entry whose variables have been replaced. A $ that is left stands for itself.
func (m Mount) checkValues() error {
	for _, text := range []string{m.Source, m.Target} {
		if strings.HasPrefix(text, "$") || strings.ContainsRune(text, 0) {
			return fmt.Errorf("the value of a variable does not begin with . or /, so that %q is no path: check the variable", text)
		}
	}
	if leavesRoot(m.Target) {
		return fmt.Errorf("the target %q leaves the container's root directory: check the variable", m.Target)
	}
	for _, flag := range m.Flags[len(defaultFlags(m.Kind)):] {
		if strings.Contains(flag, "$") {
			return fmt.Errorf("the flag %q does not exist: check the variable", flag)
		}
	}
	return m.check()
}

// hasVariable reports whether something in a text is or wants to be a variable.
func hasVariable(text string) bool {
	for rest := text; ; {
		_, after, found := strings.Cut(rest, "$")
		if !found {
			return false
		}
		if after != "" && (after[0] == '{' || after[0] == '(' || beginsName(after[0])) {
			return true
		}
		rest = after
	}
}

// replace replaces the variables of a text.
//
//	$NAME, ${NAME}           → the value
//	$(…), ${…} of other text → an error
//	another $                → itself
func replace(text string, lookup func(string) (string, bool)) (string, error) {
	var out strings.Builder
	for rest := text; ; {
		before, after, found := strings.Cut(rest, "$")
		out.WriteString(before)
		if !found {
			return out.String(), nil
		}
		name, remainder, err := variable(after)
		if err != nil {
			return "", err
		}
		rest = remainder
		if name == "" {
			out.WriteByte('$')
			continue
		}
		value, set := lookup(name)
		if !set {
			return "", fmt.Errorf("the variable %s is not set in the job's environment: set it, or write the path itself", name)
		}
		out.WriteString(value)
	}
}

// variable returns the name with which a text begins after a $, and what follows. Without a name the $ stands for itself.
func variable(text string) (name, rest string, err error) {
	if strings.HasPrefix(text, "(") {
		return "", "", fmt.Errorf("commands in $(…) do not run: set a variable, and write $NAME")
	}
	if inner, braced := strings.CutPrefix(text, "{"); braced {
		name, rest, closed := strings.Cut(inner, "}")
		if !closed || nameLength(name) != len(name) || name == "" {
			return "", "", fmt.Errorf("${ begins no name of a variable: only $NAME and ${NAME} are replaced")
		}
		return name, rest, nil
	}
	n := nameLength(text)
	return text[:n], text[n:], nil
}

// nameLength returns how many bytes of a text's beginning are the name of a variable.
func nameLength(text string) int {
	n := 0
	for n < len(text) && (beginsName(text[n]) || n > 0 && text[n] >= '0' && text[n] <= '9') {
		n++
	}
	return n
}

// beginsName reports whether a variable's name may begin with a byte.
func beginsName(c byte) bool { return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
