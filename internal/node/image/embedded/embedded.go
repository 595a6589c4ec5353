// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package embedded reads what a squashfs file has of an image's configuration among its files: enroot writes the variables of the image to
// /etc/environment, and its commands to the script /etc/rc. It does no input or output. What cannot be understood is left out: people make
// such files by hand as well.
package embedded

import (
	"path"
	"strings"
)

// The files of an image that have its configuration.
const (
	EnvironmentFile = "/etc/environment"
	ScriptFile      = "/etc/rc"
)

// Environment returns the variables, NAME=VALUE, that a file has, one a line. Values may be in quotes, and ${NAME} in them is replaced by what
// lookup returns, but in single quotes.
func Environment(file string, lookup func(name string) string) []string {
	var out []string
	for line := range strings.Lines(file) {
		line = strings.TrimSpace(line)
		line = strings.TrimLeft(strings.TrimPrefix(line, "export "), " \t")
		name, value, ok := strings.Cut(line, "=")
		if !ok || !isName(name) || strings.ContainsRune(value, 0) {
			continue
		}
		value, literal := unquote(value)
		if !literal {
			value = expand(value, lookup)
		}
		out = append(out, name+"="+value)
	}
	return out
}

// WorkingDir returns the directory to which a script changes first; empty if it is not written out.
func WorkingDir(script string) string {
	for line := range strings.Lines(script) {
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), "cd ")
		if !ok {
			continue
		}
		dir := firstWord(strings.TrimLeft(rest, " \t"))
		if !path.IsAbs(dir) || strings.ContainsAny(dir, "$`\\\x00") {
			return ""
		}
		return dir
	}
	return ""
}

// firstWord returns the first word of a shell's line. It is empty for what has no end.
func firstWord(text string) string {
	if text == "" {
		return ""
	}
	if quote := text[0]; quote == '"' || quote == '\'' {
		word, _, closed := strings.Cut(text[1:], string(quote))
		if !closed {
			return ""
		}
		return word
	}
	if end := strings.IndexAny(text, " \t;&|"); end >= 0 {
		return text[:end]
	}
	return text
}

// unquote takes away quotes around a value. A value in single quotes is literal.
func unquote(value string) (inner string, literal bool) {
	if n := len(value); n > 1 && value[0] == value[n-1] && (value[0] == '"' || value[0] == '\'') {
		return value[1 : n-1], value[0] == '\''
	}
	return value, false
}

// expand replaces ${NAME}. Another $ stands for itself.
func expand(value string, lookup func(string) string) string {
	var out strings.Builder
	for {
		before, after, found := strings.Cut(value, "${")
		name, rest, closed := strings.Cut(after, "}")
		out.WriteString(before)
		switch {
		case !found:
			return out.String()
		case !closed || !isName(name):
			out.WriteString("${")
			value = after
		default:
			out.WriteString(lookup(name))
			value = rest
		}
	}
}

// isName reports whether a text can name a variable.
func isName(text string) bool {
	for i, c := range []byte(text) {
		letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return text != ""
}
