// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/coxswain-hpc/coxswain/internal/render/image"
)

// soperatorImages are the names of Soperator's images that have a role here
// (docs/contributors/predecessors/soperator-installation.md#images-of-soperator). Their entrypoints wait for munge and write into the jail
// as root, so they do not start here. slurmrestd and sssd are not among them: others have images of these names, too.
func soperatorImages() []string {
	return []string{"controller_slurmctld", "controller_slurmdbd", "login_sshd", "populate_jail", "rebooter", "sconfigcontroller", "soperator-controllers", "soperator-exporter", "worker_slurmd"}
}

// soperatorTag is how Soperator names its builds: 1.22.1-noble-slurm25.05.4, 5.0.0-slurm26.05.3-nebius-2.
var soperatorTag = regexp.MustCompile(`^[0-9][0-9A-Za-z.]*-([a-z]+-)?slurm[0-9]`)

// isSoperators reports whether a reference names one of Soperator's images, wherever it is mirrored.
func isSoperators(reference string) bool {
	name, tag := nameOf(reference)
	return slices.Contains(soperatorImages(), name) || (name == "slurmrestd" || name == "sssd") && soperatorTag.MatchString(tag)
}

// CheckImage returns the image of ours that stands for one of Soperator's for checks of type k8sJob
// (docs/contributors/predecessors/soperator-installation.md#images-of-soperator); empty for any other.
func CheckImage(images image.Set, reference string) string {
	name, _ := nameOf(reference)
	if images.KeepSoperators {
		return ""
	}
	switch name {
	case "k8s_check_job", "sansible":
		return images.CheckJob()
	case "slurm_check_job":
		return images.SlurmCheckJob()
	}
	return ""
}

// nameOf returns the last part of an image's name, and its tag.
func nameOf(reference string) (name, tag string) {
	reference, _, _ = strings.Cut(reference, "@")
	name, tag, _ = strings.Cut(reference[strings.LastIndex(reference, "/")+1:], ":")
	return name, tag
}

// image is an image that a spec names; empty, which stands for ours of the same role, if it is one of Soperator's.
func (f *findings) image(reference, path string) string {
	if f.keepImages || !isSoperators(reference) {
		return reference
	}
	f.replaced = append(f.replaced, fmt.Sprintf("%s: %s", path, reference))
	return ""
}
