// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// soperatorImages are the names of Soperator's images that have a role here
// (docs/contributors/predecessors/soperator-installation.md#images-of-soperator). Their entrypoints wait for munge and write into the jail
// as root, so they do not start here. slurmrestd is not among them: ours has that name, too.
func soperatorImages() []string {
	return []string{"controller_slurmctld", "controller_slurmdbd", "login_sshd", "populate_jail", "rebooter", "sconfigcontroller", "soperator-controllers", "soperator-exporter", "worker_slurmd"}
}

// soperatorTag is how Soperator names its builds: 1.22.1-noble-slurm25.05.4, 5.0.0-slurm26.05.3-nebius-2.
var soperatorTag = regexp.MustCompile(`^[0-9][0-9A-Za-z.]*-([a-z]+-)?slurm[0-9]`)

// isSoperators reports whether a reference names one of Soperator's images, wherever it is mirrored.
func isSoperators(reference string) bool {
	reference, _, _ = strings.Cut(reference, "@")
	name := reference[strings.LastIndex(reference, "/")+1:]
	name, tag, _ := strings.Cut(name, ":")
	return slices.Contains(soperatorImages(), name) || name == "slurmrestd" && soperatorTag.MatchString(tag)
}

// image is an image that a spec names; empty, which stands for ours of the same role, if it is one of Soperator's.
func (f *findings) image(reference, path string) string {
	if f.keepImages || !isSoperators(reference) {
		return reference
	}
	f.replaced = append(f.replaced, fmt.Sprintf("%s: %s", path, reference))
	return ""
}
