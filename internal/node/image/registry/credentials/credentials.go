// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package credentials finds a user's login for a registry: in the .credentials file of enroot, and then in the auth.json files of podman
// and docker. It is to run as the user, with the user's rights to read files. It runs no programs, and no error of it holds a login.
package credentials

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxFileBytes is how much of a file is read. Files of logins are much smaller.
const maxFileBytes = 1 << 20

// Hosts of Docker Hub. The first is the registry itself.
const (
	hubRegistry = "registry-1.docker.io"
	hubName     = "docker.io"
	hubIndex    = "index.docker.io"
)

// Credentials are what a registry gets. The zero value is nobody's.
type Credentials struct {
	// User and Password are sent to the registry, or to the server of tokens that it names.
	User, Password string
	// IdentityToken is exchanged for a token of the registry. A file has either it or a password.
	IdentityToken string
	// Hint tells what else to do if the registry refuses. It may be there without a login.
	Hint string
}

// Format prints no part of a login, whatever the verb.
func (c Credentials) Format(state fmt.State, _ rune) {
	text := "no login"
	if !c.Anonymous() {
		text = "a login"
	}
	_, _ = io.WriteString(state, text)
}

// Anonymous reports whether there is no login.
func (c Credentials) Anonymous() bool { return c.Password == "" && c.IdentityToken == "" }

// Environment returns the value of a variable, and whether it is set.
type Environment func(name string) (value string, set bool)

// Locations are the files that may have logins.
type Locations struct {
	// Netrc is the .credentials file of enroot.
	Netrc string
	// AuthFiles are files of podman and docker. The first that has a login for an image counts.
	AuthFiles []string
}

// Locate returns where a user's logins are. Home is the user's home directory. Variables that are empty count as not set.
func Locate(home string, environment Environment) Locations {
	variable := func(name, otherwise string) string {
		if value, set := environment(name); set && value != "" {
			return value
		}
		return otherwise
	}
	config := variable("XDG_CONFIG_HOME", filepath.Join(home, ".config"))
	l := Locations{Netrc: filepath.Join(variable("ENROOT_CONFIG_PATH", filepath.Join(config, "enroot")), ".credentials")}
	if file := variable("REGISTRY_AUTH_FILE", ""); file != "" {
		l.AuthFiles = append(l.AuthFiles, file)
	}
	if runtime := variable("XDG_RUNTIME_DIR", ""); runtime != "" {
		l.AuthFiles = append(l.AuthFiles, filepath.Join(runtime, "containers", "auth.json"))
	}
	docker := variable("DOCKER_CONFIG", filepath.Join(home, ".docker"))
	l.AuthFiles = append(l.AuthFiles, filepath.Join(config, "containers", "auth.json"), filepath.Join(docker, "config.json"))
	return l
}

// Store has the logins of a user's files.
type Store struct {
	netrcPath   string
	machines    []machine
	authFiles   []authFile
	environment Environment
	warnings    []string
}

// Load reads the files that exist. The environment has the values of passwords that are variables.
func Load(l Locations, environment Environment) (*Store, error) {
	s := &Store{netrcPath: l.Netrc, environment: environment}
	text, err := s.read(l.Netrc)
	if err != nil {
		return nil, err
	}
	if s.machines, err = parseNetrc(text); err != nil {
		return nil, fmt.Errorf("reading %s: %w", l.Netrc, err)
	}
	for _, path := range l.AuthFiles {
		text, err := s.read(path)
		if err != nil {
			return nil, err
		}
		if len(text) == 0 {
			continue
		}
		file, err := parseAuthFile(text)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", path, err)
		}
		file.path = path
		s.authFiles = append(s.authFiles, file)
	}
	return s, nil
}

// read returns the content of a file, which is empty if there is none.
func (s *Store) read(path string) ([]byte, error) {
	file, err := os.Open(filepath.Clean(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("opening a file of logins: %w", err)
	}
	defer func() { _ = file.Close() }()
	status, err := file.Stat()
	switch {
	case err != nil:
		return nil, fmt.Errorf("looking at a file of logins: %w", err)
	case !status.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file: logins are read from files alone", path)
	case status.Mode().Perm()&0o044 != 0:
		s.warnings = append(s.warnings, fmt.Sprintf("others can read your logins in %s: run chmod 600 %s", path, path))
	}
	text, err := io.ReadAll(io.LimitReader(file, maxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("reading a file of logins: %w", err)
	}
	if len(text) > maxFileBytes {
		return nil, fmt.Errorf("%s has more than %d bytes, so that it is no file of logins: remove it", path, maxFileBytes)
	}
	return text, nil
}

// Warnings returns sentences about files that the user should change.
func (s *Store) Warnings() []string { return s.warnings }

// Find returns the login for an image. Host is the registry, with its port if it has one. If a user is given, only a login of that user
// counts, and it is an error if there is none; otherwise the first login counts, and without one the registry is asked as nobody.
func (s *Store) Find(host, repository, user string) (Credentials, error) {
	found, err := s.findMachine(host, user)
	if err != nil || !found.Anonymous() {
		return found, err
	}
	hint := ""
	for _, file := range s.authFiles {
		found, err := file.find(host, repository, user)
		if err != nil {
			return Credentials{}, fmt.Errorf("reading %s: %w", file.path, err)
		}
		if !found.Anonymous() {
			return found, nil
		}
		if hint == "" {
			hint = found.Hint
		}
	}
	if user != "" {
		return Credentials{}, fmt.Errorf(
			"there is no password for the user before the @ at %s: add \"machine %s login USER password PASSWORD\" to %s",
			host, withoutPort(host), s.netrcPath)
	}
	return Credentials{Hint: hint}, nil
}

// withoutPort returns a host name without its port.
func withoutPort(host string) string {
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		return host[:i]
	}
	return host
}
