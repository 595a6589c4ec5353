// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

const (
	// maxRepository is how many bytes registries take for a name.
	maxRepository = 255
	// maxHost is how many bytes a host name has at most (RFC 1035).
	maxHost = 253
	// maxQuoted is how many bytes of an argument an error shows.
	maxQuoted = 80
	// sha256Prefix begins a digest.
	sha256Prefix = "sha256:"
)

// The grammars of the OCI distribution specification.
var (
	repositoryPattern = regexp.MustCompile(`^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*$`)
	tagPattern        = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)
	digestPattern     = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
	hostPattern       = regexp.MustCompile(`^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*$`)
)

// ErrEmpty is the error of an argument without text. Scripts look for its message.
var ErrEmpty = errors.New("argument required")

// Parse reads the argument of --container-image.
//
//	begins with . or /   → a path of the node
//	has a scheme         → what the scheme stands for
//	anything else        → an image of a registry, as if it began with docker://
func Parse(argument string) (Reference, error) {
	switch {
	case argument == "":
		return Reference{}, ErrEmpty
	case isPath(argument):
		if strings.ContainsRune(argument, 0) {
			return Reference{}, fmt.Errorf("the path %s holds a NUL byte, which no file name has: remove it", quote(argument))
		}
		return Reference{Path: argument}, nil
	case strings.Contains(argument, separator):
		return ParseURI(argument)
	}
	return parseImage(Docker, argument)
}

// ParseURI reads the URI of an image, as the commands of enroot take it. It has to have a scheme.
func ParseURI(uri string) (Reference, error) {
	if uri == "" {
		return Reference{}, ErrEmpty
	}
	scheme, rest, found := strings.Cut(uri, separator)
	if !found {
		return Reference{}, fmt.Errorf("the URI %s has no scheme: write docker://, dockerd:// or podman:// before it", quote(uri))
	}
	switch s := Scheme(scheme); s {
	case Docker, Dockerd, Podman:
		return parseImage(s, rest)
	}
	return Reference{}, fmt.Errorf("images do not come from %s: use docker://, dockerd://, podman://, or a path that begins with . or /",
		quote(scheme+separator))
}

// isPath reports whether an argument names a file of the node.
func isPath(argument string) bool { return argument[0] == '.' || argument[0] == '/' }

// parseImage reads [USER@][REGISTRY#|REGISTRY/]IMAGE[:TAG][@DIGEST].
func parseImage(scheme Scheme, text string) (Reference, error) {
	if text == "" {
		return Reference{}, fmt.Errorf("%s://: an image is missing: write one after the scheme", scheme)
	}
	r := Reference{Scheme: scheme}
	rest, err := r.takeDigest(text)
	if err != nil {
		return Reference{}, err
	}
	rest, err = r.takeUser(rest)
	if err != nil {
		return Reference{}, err
	}
	rest, err = r.takeRegistry(rest)
	if err != nil {
		return Reference{}, err
	}
	if err := r.setRepository(rest); err != nil {
		return Reference{}, err
	}
	return r, nil
}

// takeDigest sets the digest that ends a text, and returns what is before it.
func (r *Reference) takeDigest(text string) (rest string, err error) {
	at := strings.LastIndexByte(text, '@')
	if at < 0 {
		return text, nil
	}
	digest := text[at+1:]
	switch algorithm, _, _ := strings.Cut(digest, ":"); {
	case digestPattern.MatchString(digest):
		r.Digest = digest
		return text[:at], nil
	case strings.HasPrefix(digest, sha256Prefix):
		return "", fmt.Errorf("the digest %s is not sha256: and 64 digits of 0-9 and a-f: copy it again", quote(digest))
	case algorithm == "sha512" || algorithm == "sha384":
		return "", fmt.Errorf("digests of %s are not supported: use the image's sha256: digest", algorithm)
	}
	return text, nil
}

// takeUser sets the user before an @, and returns what is after it. No image has an @, so that the last one ends the user. Its errors do
// not show the user: people write passwords there.
func (r *Reference) takeUser(text string) (rest string, err error) {
	at := strings.LastIndexByte(text, '@')
	if at < 0 {
		return text, nil
	}
	user := text[:at]
	switch {
	case r.Local():
		return "", fmt.Errorf("an image of %s:// has no user: remove what is before the @", r.Scheme)
	case user == "":
		return "", errors.New("the user before the @ is empty: remove the @, or quote a user that begins with $ in the shell")
	case strings.Contains(user, ":"):
		return "", errors.New("the user before the @ holds a colon: passwords belong into ~/.config/enroot/.credentials")
	case strings.ContainsFunc(user, func(c rune) bool { return unicode.IsSpace(c) || !unicode.IsPrint(c) }) || strings.ContainsAny(user, "/#"):
		return "", errors.New("the user before the @ holds a character that no login has: write [USER@][REGISTRY#]IMAGE[:TAG]")
	}
	r.User = user
	return text[at+1:], nil
}

// takeRegistry sets the registry, and returns what is after it.
func (r *Reference) takeRegistry(text string) (rest string, err error) {
	registry, rest, marked := strings.Cut(text, "#")
	if !marked {
		first, after, slash := strings.Cut(text, "/")
		if !slash || !strings.ContainsAny(first, ".:") && first != "localhost" {
			if !r.Local() {
				r.Registry = DockerHub
			}
			return text, nil
		}
		registry, rest = first, after
	}
	host := strings.ToLower(registry)
	if err := checkHost(host); err != nil {
		return "", err
	}
	if host == dockerHubName || host == "index.docker.io" {
		host = DockerHub
	}
	r.Registry = host
	return rest, nil
}

// checkHost returns what is wrong about a host with or without a port.
func checkHost(text string) error {
	host, port, hasPort := text, "", false
	switch i := strings.LastIndexByte(text, ':'); {
	case text == "":
		return errors.New("the registry before the # is empty: write its host name, or remove the #")
	case strings.HasSuffix(text, "]"):
	case i >= 0:
		host, port, hasPort = text[:i], text[i+1:], true
	}
	if n, err := strconv.ParseUint(port, 10, 16); hasPort && (err != nil || n == 0 || port[0] == '0' || port[0] == '+') {
		return fmt.Errorf("the registry %s has no port from 1 to 65535 after its colon: write HOST or HOST:PORT", quote(text))
	}
	if inner, bracketed := strings.CutPrefix(host, "["); bracketed {
		if address, err := netip.ParseAddr(strings.TrimSuffix(inner, "]")); err == nil && address.Is6() && address.Zone() == "" {
			return nil
		}
	} else if len(host) <= maxHost && hostPattern.MatchString(host) {
		return nil
	}
	return fmt.Errorf("the registry %s is not a host name: write HOST or HOST:PORT, and then # and the image", quote(text))
}

// setRepository reads IMAGE[:TAG].
func (r *Reference) setRepository(text string) error {
	repository, tag, tagged := text, "", false
	if i := strings.LastIndexByte(text, ':'); i > strings.LastIndexByte(text, '/') {
		repository, tag, tagged = text[:i], text[i+1:], true
	}
	switch {
	case repository == "":
		return errors.New("the image has no name: write [USER@][REGISTRY#]IMAGE[:TAG]")
	case tagged && !tagPattern.MatchString(tag):
		return fmt.Errorf("the tag %s is not up to 128 letters, digits, dots, dashes and underscores: write IMAGE:TAG, or IMAGE alone",
			quote(tag))
	}
	if r.Registry == DockerHub && !strings.Contains(repository, "/") {
		repository = official + repository
	}
	switch lower := strings.ToLower(repository); {
	case len(repository) > maxRepository:
		return fmt.Errorf("the image %s has a name of %d bytes, and registries take %d: check the argument", quote(repository), len(repository),
			maxRepository)
	case lower != repository && repositoryPattern.MatchString(lower):
		return fmt.Errorf("the image %s has upper case letters, which registries do not take: write %s", quote(repository), quote(lower))
	case !repositoryPattern.MatchString(repository):
		return fmt.Errorf("the image %s is no name of a registry: write [USER@][REGISTRY#]IMAGE[:TAG], or a path that begins with . or /",
			quote(repository))
	}
	if !tagged && r.Digest == "" {
		tag = latest
	}
	r.Repository, r.Tag = repository, tag
	return nil
}

// quote returns a text for an error, on one line and not too long.
func quote(text string) string {
	if len(text) > maxQuoted {
		return strconv.Quote(strings.ToValidUTF8(text[:maxQuoted], "")) + "…"
	}
	return strconv.Quote(text)
}
