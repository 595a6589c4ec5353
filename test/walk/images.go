// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/coxswain-hpc/coxswain/internal/testing/images"
)

// Images are which images run: <Registry>/operator:<Tag>, <Registry>/slurmctld:<Tag> and so on.
type Images struct {
	Registry, Tag string
	// Suite is the Debian release that the images are built on and with it the release of Slurm: forky (26.05) or trixie
	// (24.11). Images of trixie have the tag <Tag>-24.11. Default: forky.
	Suite string
}

// LocalRegistry is the name of images that no registry has.
const LocalRegistry = "coxswain.local"

// Load builds the images where they are not current and loads them into the nodes that do not have them.
func (i Images) Load(ctx context.Context, r Repository, p *Progress) error {
	archives, err := i.build(ctx, r, p)
	if err != nil {
		return err
	}
	return r.load(ctx, p, archives)
}

// load loads archives into the nodes of the local Kubernetes that do not have them.
func (r Repository) load(ctx context.Context, p *Progress, archives []string) error {
	p.Waiting("the nodes to load the images")
	_, err := r.run(ctx, p, "bin/localkube", append([]string{"load"}, archives...)...)
	return err
}

// Expect returns what a Kubernetes that is not ours must be able to pull.
func (i Images) Expect(p *Progress) error {
	if i.Registry == LocalRegistry {
		return fmt.Errorf("your cluster cannot pull images from %[1]s, which exists on this machine only: "+
			"build them with \"make images REGISTRY=<registry>\", push the archives below %[2]s to a registry that your cluster can pull from, "+
			"and name it with REGISTRY=<registry>", LocalRegistry, filepath.Dir(i.Archive("slurm")))
	}
	p.Say("  expecting %s/operator:%s, %s/slurmctld:%s and their kin in the registry", i.Registry, i.Tag, i.Registry, i.Tag)
	return nil
}

// Unpack lays the files of Slurm images that were built here into a directory, one image over the other: a root file system
// in which their programs run without a container.
func (i Images) Unpack(ctx context.Context, dir string, names ...string) error {
	return i.unpack(ctx, i.Archive("slurm"), dir, names...)
}

func (i Images) unpack(ctx context.Context, archive, dir string, names ...string) error {
	return images.Unpack(ctx, archive, dir, names...)
}

// Release returns the tag of the images.
func (i Images) Release() string {
	if i.Suite == "trixie" {
		return i.Tag + "-24.11"
	}
	return i.Tag
}

// build returns the archives that it wrote or found current.
func (i Images) build(ctx context.Context, r Repository, p *Progress) ([]string, error) {
	args := []string{"--registry", i.Registry, "--tag", i.Tag}
	archives := []string{i.Archive("slurm")}
	if i.Suite != "" {
		args = append(args, "--suite", i.Suite)
	}
	if i.Suite != "trixie" {
		archives = append(archives, i.Archive("operator"))
	}
	p.Waiting("the images")
	if err := r.show(ctx, p, "images/build", args...); err != nil {
		return nil, err
	}
	return archives, nil
}

// Archive returns where images/build keeps the archive of Slurm's images, or of the operator's.
func (i Images) Archive(name string) string {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	return filepath.Join(cache, "coxswain", "images", name+"-"+i.Release()+".tar")
}

// operatorDigest distinguishes one build of the operator's image from another; empty when it was not built here.
func (i Images) operatorDigest() string {
	text, err := os.ReadFile(i.Archive("operator") + ".inputs")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
