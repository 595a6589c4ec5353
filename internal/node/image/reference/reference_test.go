// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package reference_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-hpc/coxswain/internal/node/image/reference"
)

const (
	hub = reference.DockerHub
	hex = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
)

// image returns an image of a registry.
func image(registry, repository, tag string) reference.Reference {
	return reference.Reference{Scheme: reference.Docker, Registry: registry, Repository: repository, Tag: tag}
}

// with returns an image with user and digest.
func with(r reference.Reference, user, digest string) reference.Reference {
	r.User, r.Digest = user, digest
	return r
}

func TestAnArgumentNamesAnImage(t *testing.T) {
	for name, test := range map[string]struct {
		argument string
		want     reference.Reference
	}{
		"a bare name is an official image of Docker Hub": {"ubuntu", image(hub, "library/ubuntu", "latest")},
		"a name with a tag is an official image":         {"ubuntu:24.04", image(hub, "library/ubuntu", "24.04")},
		"docker.io with a slash is Docker Hub":           {"docker.io/ubuntu:24.04", image(hub, "library/ubuntu", "24.04")},
		"docker.io with a number sign is Docker Hub":     {"docker.io#ubuntu:24.04", image(hub, "library/ubuntu", "24.04")},
		"index.docker.io is Docker Hub":                  {"index.docker.io/library/ubuntu", image(hub, "library/ubuntu", "latest")},
		"the registry's own name is Docker Hub":          {"registry-1.docker.io#ubuntu", image(hub, "library/ubuntu", "latest")},
		"a URI of docker is the same image":              {"docker://ubuntu:24.04", image(hub, "library/ubuntu", "24.04")},
		"a name with a slash is an image of Docker Hub":  {"pytorch/pytorch:2.4", image(hub, "pytorch/pytorch", "2.4")},
		"a number sign ends a registry": {
			"nvcr.io#nvidia/pytorch:25.01-py3", image("nvcr.io", "nvidia/pytorch", "25.01-py3"),
		},
		"a dot before the first slash makes a registry": {
			"nvcr.io/nvidia/pytorch:25.01-py3", image("nvcr.io", "nvidia/pytorch", "25.01-py3"),
		},
		"a user may begin with a dollar sign": {
			"$oauthtoken@nvcr.io#org/team/img", with(image("nvcr.io", "org/team/img", "latest"), "$oauthtoken", ""),
		},
		"a user may stand before a registry with a slash": {"me@nvcr.io/org/img:1", with(image("nvcr.io", "org/img", "1"), "me", "")},
		"a user may be an address": {
			"me@site.org@nvcr.io#a", with(image("nvcr.io", "a", "latest"), "me@site.org", ""),
		},
		"a user may stand before an image of Docker Hub": {
			"docker://me@ubuntu:24.04", with(image(hub, "library/ubuntu", "24.04"), "me", ""),
		},
		"localhost with a port is a registry":             {"localhost:5000#a/b/c:1", image("localhost:5000", "a/b/c", "1")},
		"localhost is a registry":                         {"localhost/a:1", image("localhost", "a", "1")},
		"a colon before the first slash makes a registry": {"reg.example:5000/a/b:1", image("reg.example:5000", "a/b", "1")},
		"a number sign makes a registry of any host":      {"reg#a", image("reg", "a", "latest")},
		"an address of IPv6 is a registry":                {"[fd00::1]:5000/a:1", image("[fd00::1]:5000", "a", "1")},
		"a host is the same in upper case":                {"NVCR.io#nvidia/cuda:12", image("nvcr.io", "nvidia/cuda", "12")},
		"a tag beside a digest is a label": {
			"img:tag@sha256:" + hex, with(image(hub, "library/img", "tag"), "", "sha256:"+hex),
		},
		"a digest alone has no tag": {"img@sha256:" + hex, with(image(hub, "library/img", ""), "", "sha256:"+hex)},
		"user, registry and digest stand together": {
			"me@nvcr.io#a/b@sha256:" + hex, with(image("nvcr.io", "a/b", ""), "me", "sha256:"+hex),
		},
		"a file without a path is taken for an image": {"image.sqsh", image(hub, "library/image.sqsh", "latest")},
		"the image docker is no scheme":               {"docker:24-dind", image(hub, "library/docker", "24-dind")},
		"a path begins with a slash":                  {"/data/a b.sqsh", reference.Reference{Path: "/data/a b.sqsh"}},
		"a path begins with a dot":                    {"./image.sqsh", reference.Reference{Path: "./image.sqsh"}},
		"a directory is a path":                       {"./", reference.Reference{Path: "./"}},
		"a device is a path":                          {"/dev/urandom", reference.Reference{Path: "/dev/urandom"}},
		"a path may look like a URI":                  {"./docker://x", reference.Reference{Path: "./docker://x"}},
		"an image of the Docker daemon has the name it has there": {
			"dockerd://ubuntu:24.04", reference.Reference{Scheme: reference.Dockerd, Repository: "ubuntu", Tag: "24.04"},
		},
		"an image of podman may have a registry": {
			"podman://localhost/mine", reference.Reference{Scheme: reference.Podman, Registry: "localhost", Repository: "mine", Tag: "latest"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := reference.Parse(test.argument)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s is another image (-want +got):\n%s", test.argument, diff)
			}
			again, err := reference.Parse(got.String())
			if err != nil || again != got {
				t.Errorf("%s is printed as %s, which is %+v, %v", test.argument, got, again, err)
			}
		})
	}
}

func TestAnErrorTellsTheWayOut(t *testing.T) {
	for name, test := range map[string]struct{ argument, want string }{
		"nothing":        {"", "argument required"},
		"a scheme alone": {"docker://", "docker://: an image is missing: write one after the scheme"},
		"another scheme": {
			"https://x/y", `images do not come from "https://": use docker://, dockerd://, podman://, or a path that begins with . or /`,
		},
		"two schemes": {
			"docker://podman://x", `the registry "podman:" has no port from 1 to 65535 after its colon: write HOST or HOST:PORT`,
		},
		"an empty tag": {
			"ubuntu:", `the tag "" is not up to 128 letters, digits, dots, dashes and underscores: write IMAGE:TAG, or IMAGE alone`,
		},
		"a tag of a bad character": {"ubuntu:a+b", `the tag "a+b" is not up to`},
		"upper case": {
			"nvcr.io#NVIDIA/cuda", `the image "NVIDIA/cuda" has upper case letters, which registries do not take: write "nvidia/cuda"`,
		},
		"a short digest": {
			"ubuntu@sha256:abc", `the digest "sha256:abc" is not sha256: and 64 digits of 0-9 and a-f: copy it again`,
		},
		"another digest": {"ubuntu@sha512:" + hex, "digests of sha512 are not supported: use the image's sha256: digest"},
		"a password": {
			"me:secret@nvcr.io#a", "the user before the @ holds a colon: passwords belong into ~/.config/enroot/.credentials",
		},
		"a user that the shell has removed": {
			"@nvcr.io#a", "the user before the @ is empty: remove the @, or quote a user that begins with $ in the shell",
		},
		"a user of a daemon": {"dockerd://me@ubuntu", "an image of dockerd:// has no user: remove what is before the @"},
		"a user with a blank": {
			"a b@nvcr.io#a", "the user before the @ holds a character that no login has: write [USER@][REGISTRY#]IMAGE[:TAG]",
		},
		"an empty registry":  {"#a", "the registry before the # is empty: write its host name, or remove the #"},
		"a port of too many": {"reg.example:65536/a", `the registry "reg.example:65536" has no port from 1 to 65535`},
		"a port of zero":     {"reg.example:0/a", `the registry "reg.example:0" has no port from 1 to 65535`},
		"a registry that is no host": {
			"a_b#c", `the registry "a_b" is not a host name: write HOST or HOST:PORT, and then # and the image`,
		},
		"an address without brackets": {"fd00::1:5000#c", `the registry "fd00::1:5000" is not a host name`},
		"a registry alone":            {"nvcr.io#", "the image has no name: write [USER@][REGISTRY#]IMAGE[:TAG]"},
		"two slashes":                 {"a//b", `the image "a//b" is no name of a registry`},
		"parts of a path":             {"a/../b", `the image "a/../b" is no name of a registry`},
		"two number signs":            {"a#b#c", `the image "b#c" is no name of a registry`},
		"a line feed":                 {"ubuntu\nx", `the image "library/ubuntu\nx" is no name of a registry`},
		"a path with a NUL byte":      {"/a\x00b", `the path "/a\x00b" holds a NUL byte, which no file name has: remove it`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := reference.Parse(test.argument)
			if err == nil {
				t.Fatalf("%q is %+v", test.argument, got)
			}
			if !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("the error is\n%s, not\n%s", err, test.want)
			}
			if strings.Contains(err.Error(), "secret") {
				t.Error("the error shows a password")
			}
		})
	}
}

func TestALongArgumentHasAShortError(t *testing.T) {
	for name, argument := range map[string]string{
		"of letters":  strings.Repeat("a", 2048),
		"of noise":    strings.Repeat("ä\x00\xff-#@:/", 250),
		"of a tag":    "a:" + strings.Repeat("b", 2048),
		"of a host":   strings.Repeat("a", 2048) + "#b",
		"of a digest": "a@sha256:" + strings.Repeat("a", 2048),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := reference.Parse(argument)
			if err == nil || len(err.Error()) > 600 || strings.ContainsAny(err.Error(), "\n\x00") {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

func TestAURIHasAScheme(t *testing.T) {
	_, err := reference.ParseURI("ubuntu")
	if err == nil || !strings.Contains(err.Error(), "write docker://, dockerd:// or podman:// before it") {
		t.Errorf("the error is %v", err)
	}
	if _, err := reference.ParseURI(""); err == nil {
		t.Error("nothing is a URI")
	}
	if got, err := reference.ParseURI("docker://ubuntu"); err != nil || got != image(hub, "library/ubuntu", "latest") {
		t.Errorf("the image is %+v, %v", got, err)
	}
}

func TestAnImageHasAName(t *testing.T) {
	for name, test := range map[string]struct{ argument, called string }{
		"an official image":      {"ubuntu:24.04", "docker.io/library/ubuntu:24.04"},
		"an image without a tag": {"ubuntu", "docker.io/library/ubuntu:latest"},
		"an image with slashes":  {"nvcr.io#nvidia/pytorch:25.01-py3", "nvcr.io/nvidia/pytorch:25.01-py3"},
		"an image of a digest":   {"ubuntu@sha256:" + hex, "docker.io/library/ubuntu@sha256:" + hex},
		"library elsewhere":      {"reg.example/library/a", "reg.example/library/a:latest"},
		"an image of a daemon":   {"dockerd://a:1", "a:1"},
		"a path":                 {"./a.sqsh", "./a.sqsh"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := reference.Parse(test.argument)
			if err != nil || r.Name() != test.called {
				t.Errorf("the name is %q, %v", r.Name(), err)
			}
		})
	}
}

func TestAFileWithoutAPathGetsAHint(t *testing.T) {
	for name, test := range map[string]struct {
		argument string
		exists   bool
		want     string
	}{
		"a file that exists":             {"image.sqsh", true, "did you mean the file ./image.sqsh?"},
		"a file of a directory":          {"images/a.sqsh", true, "did you mean the file ./images/a.sqsh?"},
		"a file that does not exist":     {"image.sqsh", false, ""},
		"a path that exists":             {"./image.sqsh", true, ""},
		"a URI beside which a file lies": {"docker://a", true, ""},
		"nothing":                        {"", true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := reference.FileHint(test.argument, test.exists); got != test.want {
				t.Errorf("the hint is %q", got)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"ubuntu:24.04", "$oauthtoken@nvcr.io#a/b:1", "a@sha256:" + hex, "./a", "podman://[::1]:5/a", "dockerd://a", "A.b/c",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, argument string) {
		r, err := reference.Parse(argument)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\r\x00") {
				t.Errorf("the error of %q has several lines: %q", argument, err)
			}
			return
		}
		again, err := reference.Parse(r.String())
		if err != nil || again != r {
			t.Errorf("%q is printed as %q, which is %+v, %v", argument, r, again, err)
		}
	})
}
