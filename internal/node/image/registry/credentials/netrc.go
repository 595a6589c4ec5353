// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"errors"
	"fmt"
	"strings"
)

// machine is an entry of a netrc file.
type machine struct {
	// name is the host, in lower case and without a port.
	name string
	// login and password are as written.
	login, password string
	// line is where the entry begins, counted from 1.
	line int
}

// word is a word of a netrc file, with the number of its line.
type word struct {
	text string
	line int
}

// parseNetrc reads a file in the format of netrc: "machine HOST login USER password PASSWORD", on one or several lines. An entry "default"
// is left out, so that no host gets a login that is not meant for it. Errors name lines, since any word may be a password.
func parseNetrc(text []byte) ([]machine, error) {
	words := split(string(text))
	var machines []machine
	var current *machine
	for i := 0; i < len(words); i++ {
		key, line := words[i].text, words[i].line
		if key == "default" {
			current = &machine{line: line}
			continue
		}
		if key != "machine" && key != "login" && key != "user" && key != "password" && key != "passwd" && key != "account" {
			return nil, fmt.Errorf("line %d: a word is none of machine, login and password: write \"machine HOST login USER password PASSWORD\"",
				line)
		}
		if i++; i == len(words) {
			return nil, fmt.Errorf("line %d: the last word %q has nothing after it: add its value, or remove it", line, key)
		}
		value := words[i].text
		switch {
		case key == "machine":
			machines = append(machines, machine{name: withoutPort(strings.ToLower(value)), line: line})
			current = &machines[len(machines)-1]
		case current == nil:
			return nil, fmt.Errorf("line %d: %q stands before the first machine: begin the file with \"machine HOST\"", line, key)
		case key == "login" || key == "user":
			current.login = value
		case key == "password" || key == "passwd":
			current.password = value
		}
	}
	return machines, nil
}

// split returns the words of a netrc file. A word in double quotes may hold blanks; so may one that begins with $(. A line that begins
// with # is a comment. A macro, which is for ftp, ends at an empty line and is left out.
func split(text string) []word {
	var words []word
	macro := false
	number := 0
	for line := range strings.Lines(text) {
		number++
		rest := strings.TrimSpace(line)
		if macro = macro && rest != ""; macro || strings.HasPrefix(rest, "#") {
			continue
		}
		for rest != "" {
			var next string
			next, rest = cutWord(rest)
			if next == "macdef" {
				macro = true
				break
			}
			words = append(words, word{text: next, line: number})
			rest = strings.TrimSpace(rest)
		}
	}
	return words
}

// cutWord returns the first word of a line that begins with one, and what follows.
func cutWord(line string) (first, rest string) {
	if strings.HasPrefix(line, "$(") {
		if end := strings.LastIndexByte(line, ')'); end > 0 {
			return line[:end+1], line[end+1:]
		}
		return line, ""
	}
	if line[0] != '"' {
		if end := strings.IndexAny(line, " \t\r\n\v\f"); end >= 0 {
			return line[:end], line[end:]
		}
		return line, ""
	}
	var out strings.Builder
	for i := 1; i < len(line); i++ {
		switch c := line[i]; {
		case c == '"':
			return out.String(), line[i+1:]
		case c == '\\' && i+1 < len(line):
			i++
			out.WriteByte(line[i])
		default:
			out.WriteByte(c)
		}
	}
	return out.String(), ""
}

// machinesOf returns the hosts whose entries are for a registry: the registry itself, and where well-known registries hand out their
// tokens. Users have entries for one, the other or both. It is a fixed list: a registry must not choose which other host's password it is
// sent.
func machinesOf(host string) []string {
	switch name := withoutPort(strings.ToLower(host)); name {
	case hubRegistry, hubIndex, hubName:
		return []string{hubRegistry, "auth.docker.io", hubIndex, hubName}
	case "nvcr.io":
		return []string{name, "authn.nvidia.com"}
	case "registry.gitlab.com":
		return []string{name, "gitlab.com"}
	default:
		return []string{name}
	}
}

// findMachine returns the login that the netrc file has for a host.
func (s *Store) findMachine(host, user string) (Credentials, error) {
	for _, name := range machinesOf(host) {
		for _, m := range s.machines {
			if m.name != name || user != "" && m.login != user || m.password == "" {
				continue
			}
			password, err := expandPassword(m.password, s.environment)
			if err != nil {
				return Credentials{}, fmt.Errorf("reading %s: line %d: %w", s.netrcPath, m.line, err)
			}
			return Credentials{User: m.login, Password: password}, nil
		}
	}
	return Credentials{}, nil
}

// expandPassword returns a password, or the variable that it names. An error does not name the variable: it may be a password that happens
// to begin with a dollar sign.
func expandPassword(password string, environment Environment) (string, error) {
	name, variable := strings.CutPrefix(password, "$")
	if !variable {
		return password, nil
	}
	if strings.HasPrefix(name, "(") {
		return "", errors.New("the password is a command, which is not run: put what it prints into a variable, and write $NAME")
	}
	if inner, braced := strings.CutPrefix(name, "{"); braced {
		name = strings.TrimSuffix(inner, "}")
		if name == inner {
			name = ""
		}
	}
	if !isName(name) {
		return "", errors.New("the password begins with a dollar sign, but is no name of a variable: write $NAME or ${NAME}")
	}
	value, set := environment(name)
	if !set || value == "" {
		return "", errors.New("the password is a variable that is not set in the job's environment: set it before the job is submitted")
	}
	return value, nil
}

// isName reports whether a text is the name of a variable.
func isName(text string) bool {
	for i := range len(text) {
		c := text[i]
		if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return text != ""
}
