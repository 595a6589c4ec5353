// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"
)

// authFile is what an auth.json of podman or a config.json of docker has (containers-auth.json(5)).
type authFile struct {
	path string
	// Auths has logins by registry, or by registry and the beginning of a repository.
	Auths map[string]authEntry `json:"auths"`
	// CredsStore and CredHelpers name programs that know logins.
	CredsStore  string            `json:"credsStore"`
	CredHelpers map[string]string `json:"credHelpers"`
}

// authEntry is a login of an authFile.
type authEntry struct {
	Auth          string `json:"auth"`
	Username      string `json:"username"`
	Password      string `json:"password"`
	IdentityToken string `json:"identitytoken"`
}

// parseAuthFile reads a file. Its errors hold nothing of the file.
func parseAuthFile(text []byte) (authFile, error) {
	var raw authFile
	if err := json.Unmarshal(text, &raw); err != nil {
		return authFile{}, errors.New(`it is no JSON of the form {"auths": {"HOST": {"auth": "…"}}}: log in again with podman or docker`)
	}
	file := authFile{Auths: map[string]authEntry{}, CredsStore: raw.CredsStore, CredHelpers: map[string]string{}}
	for key, entry := range raw.Auths {
		file.Auths[normalize(key)] = entry
	}
	for key, helper := range raw.CredHelpers {
		file.CredHelpers[normalize(key)] = helper
	}
	return file, nil
}

// normalize returns a key as HOST or HOST/REPOSITORY. Docker's keys for Docker Hub are URLs.
func normalize(key string) string {
	if _, after, found := strings.Cut(key, "://"); found {
		key = after
	}
	key = strings.TrimSuffix(key, "/")
	for _, version := range []string{"/v1", "/v2"} {
		key = strings.TrimSuffix(key, version)
	}
	host, repository, _ := strings.Cut(key, "/")
	return path.Join(registryOf(host), repository)
}

// registryOf returns the host of a registry for any of its names.
func registryOf(host string) string {
	switch host = strings.ToLower(host); host {
	case hubName, hubIndex:
		return hubRegistry
	}
	return host
}

// find returns the login for an image: that of the longest key which names the repository, one of the directories above it, or the host.
func (f authFile) find(host, repository, user string) (Credentials, error) {
	host = registryOf(host)
	for key := path.Join(host, repository); key != "." && key != "/"; key = path.Dir(key) {
		entry, has := f.Auths[key]
		if !has {
			continue
		}
		found, err := entry.credentials()
		if err != nil {
			return Credentials{}, fmt.Errorf("the entry of %s: %w", host, err)
		}
		if !found.Anonymous() && (user == "" || user == found.User) {
			return found, nil
		}
	}
	if helper := f.CredHelpers[host]; helper != "" || f.CredsStore != "" {
		return Credentials{Hint: f.path + " leaves logins to a credential helper, which is not run"}, nil
	}
	return Credentials{}, nil
}

// credentials returns the login of an entry.
func (e authEntry) credentials() (Credentials, error) {
	c := Credentials{User: e.Username, Password: e.Password, IdentityToken: e.IdentityToken}
	if e.Auth == "" {
		return c, nil
	}
	text, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(strings.TrimSpace(e.Auth), "="))
	if err != nil {
		return Credentials{}, errors.New("auth is not base64: log in again with podman or docker")
	}
	user, password, found := strings.Cut(string(text), ":")
	if !found {
		return Credentials{}, errors.New("auth is not USER:PASSWORD in base64: log in again with podman or docker")
	}
	// Docker pads a password with NUL bytes.
	c.User, c.Password = user, strings.Trim(password, "\x00")
	if c.IdentityToken != "" {
		c.Password = ""
	}
	return c, nil
}
