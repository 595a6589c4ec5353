// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reference reads what users write to name a container image: the argument of --container-image, and the URIs of enroot. It does no
// input or output: whether a file or an image is there is for its callers to find out.
package reference

import "strings"

// Scheme is where an image comes from.
type Scheme string

// The schemes of a URI.
const (
	// Docker is a registry.
	Docker Scheme = "docker"
	// Dockerd is the Docker daemon of the node.
	Dockerd Scheme = "dockerd"
	// Podman is the storage of podman on the node.
	Podman Scheme = "podman"
)

const (
	// DockerHub is the registry that has an image whose name has none.
	DockerHub = "registry-1.docker.io"
	// dockerHubName is how people and the docker command call that registry.
	dockerHubName = "docker.io"
	// official begins the repositories of Docker Hub that users write without a slash.
	official = "library/"
	// latest is the tag of a name that has neither tag nor digest.
	latest = "latest"
	// separator ends a scheme.
	separator = "://"
)

// Reference is an image that a user named. It is comparable.
type Reference struct {
	// Path is a file or a directory of the node, as written. If it is set, all other fields are empty.
	Path string
	// Scheme is where the image comes from.
	Scheme Scheme
	// User is whose login the registry gets. It is empty if the first login for the registry will do.
	User string
	// Registry is a host in lower case, with a port if one was written. It is empty for an image of a daemon that is named without one.
	Registry string
	// Repository is the name in the registry. For Docker Hub it has "library/" where users leave it out.
	Repository string
	// Tag is "latest" if neither tag nor digest was written. Beside a digest it is only a label.
	Tag string
	// Digest is "sha256:" and 64 digits, or empty.
	Digest string
}

// IsPath reports whether the image is a file or a directory of the node.
func (r Reference) IsPath() bool { return r.Path != "" }

// Local reports whether a daemon of the node has the image.
func (r Reference) Local() bool { return r.Scheme == Dockerd || r.Scheme == Podman }

// String returns a text from which Parse makes the same reference.
func (r Reference) String() string {
	if r.IsPath() {
		return r.Path
	}
	var b strings.Builder
	b.WriteString(string(r.Scheme) + separator)
	if r.User != "" {
		b.WriteString(r.User + "@")
	}
	if r.Registry != "" {
		b.WriteString(r.Registry + "#")
	}
	b.WriteString(r.Repository + r.version())
	return b.String()
}

// Name returns the image as the docker command and messages name it, without scheme and user.
func (r Reference) Name() string {
	switch r.Registry {
	case "":
		return r.Path + r.Repository + r.version()
	case DockerHub:
		return dockerHubName + "/" + r.Repository + r.version()
	}
	return r.Registry + "/" + r.Repository + r.version()
}

// version returns tag and digest with what stands before them.
func (r Reference) version() string {
	text := ""
	if r.Tag != "" {
		text = ":" + r.Tag
	}
	if r.Digest != "" {
		text += "@" + r.Digest
	}
	return text
}

// FileHint returns what to add to the error of an argument that is no image. Users often write the name of a file without the "./" that
// makes it a path. The caller reports whether a file of the argument's name exists in the working directory. Without a hint it is empty.
func FileHint(argument string, exists bool) string {
	if !exists || argument == "" || isPath(argument) || strings.Contains(argument, separator) {
		return ""
	}
	return "did you mean the file ./" + argument + "?"
}
