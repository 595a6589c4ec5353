// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package container makes the container of a step on a node: it gets the image, puts together what the tasks see, and tells the plugin in
// slurmstepd how they get in. It runs as the user of the job, in a user namespace that the plugin has made.
package container

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/coxswain-hpc/coxswain/internal/node/container/rootfs"
	"github.com/coxswain-hpc/coxswain/internal/node/container/step"
	"github.com/coxswain-hpc/coxswain/internal/node/image/mount"
	"github.com/coxswain-hpc/coxswain/internal/node/image/reference"
	"github.com/coxswain-hpc/coxswain/internal/node/image/registry/credentials"
	"github.com/coxswain-hpc/coxswain/internal/node/image/service"
)

// defaultPath is what the PATH of an image is if it has none, as for docker.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Start makes the container that a request asks for, and makes it the root of this process. Progress gets lines for the user. Errors are
// sentences for the user.
func Start(ctx context.Context, socket string, r *step.Request, progress func(string)) (*step.Result, error) {
	if err := refuse(r); err != nil {
		return nil, err
	}
	job := step.ParseEnvironment(r.Environment)
	user := userOf(r, job)
	mounts, err := mount.Expand(r.Mounts, func(name string) (string, bool) { v, ok := job[name]; return v, ok })
	if err != nil {
		return nil, err
	}
	image, err := getImage(ctx, socket, r, job, user, progress)
	if err != nil {
		return nil, err
	}
	defer func() { _ = image.Mount.Close() }()
	view, err := gather(r, user, mounts)
	if err != nil {
		return nil, err
	}
	if err := startLoopback(r); err != nil {
		return nil, err
	}
	root, err := rootfs.New(rootfs.Layers{Image: image.Mount})
	if err != nil {
		return nil, err
	}
	if image.Digest == "" {
		if image.Config, err = configOf(root, job); err != nil {
			return nil, err
		}
	}
	makeDirectory(root, image.Config.WorkingDir)
	if err := view.show(root, user); err != nil {
		return nil, err
	}
	if r.Writable != nil && !*r.Writable {
		if err := root.ReadOnly(); err != nil {
			return nil, err
		}
	}
	if err := root.Enter(); err != nil {
		return nil, err
	}
	variables := step.ParseEnvironment(image.Config.Env)
	variables["PATH"] = cmp.Or(variables["PATH"], defaultPath)
	result := &step.Result{PID: os.Getpid(), Directory: cmp.Or(r.Workdir, image.Config.WorkingDir, "/"), Capable: user.root, Namespaces: r.Unshare}
	if !filepath.IsAbs(result.Directory) {
		result.Directory = "/" + result.Directory
	}
	result.Set, result.Unset = step.Overlay(job, variables, r.Env, user.home)
	return result, nil
}

// getImage asks the node's service for the image.
func getImage(ctx context.Context, socket string, r *step.Request, job step.Environment, user user, progress func(string)) (*service.Mounted, error) {
	ref, err := reference.Parse(r.Image)
	if err != nil {
		return nil, err
	}
	if ref.IsPath() {
		return openImage(ctx, socket, absolute(ref.Path, r.Directory))
	}
	lookup := func(name string) (string, bool) { v, ok := job[name]; return v, ok }
	logins, err := credentials.Load(credentials.Locate(user.hostHome, lookup), lookup)
	if err != nil {
		return nil, err
	}
	for _, warning := range logins.Warnings() {
		progress(warning)
	}
	find := func(host, repository string) (credentials.Credentials, error) {
		return logins.Find(host, repository, ref.User)
	}
	image, err := service.Get(ctx, socket, ref, find, progress)
	if err != nil {
		err = fmt.Errorf("failed to import docker image: %s: %w", ref.Name(), err)
		_, missing := os.Stat(absolute(r.Image, r.Directory))
		if hint := reference.FileHint(r.Image, missing == nil); hint != "" {
			err = fmt.Errorf("%w: %s", err, hint)
		}
		return nil, err
	}
	return image, nil
}

// shown is a mount of the node that the container shows.
type shown struct {
	tree       *os.File
	target     string
	create     bool
	attributes rootfs.Attributes
	optional   bool
	detach     bool
}

// view is what of the node a container shows, in its order.
type view []shown

// file is a file or a directory of the node, with attributes of its mount.
type file struct {
	path      string
	set       uint64
	recursive bool
}

// system returns the files of the node that are in every container: docs/contributors/predecessors.
func system() []file {
	return []file{
		{"/proc", unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOEXEC, true},
		{"/sys", unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOEXEC, true},
		{"/dev", unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NOEXEC, true},
		{"/etc/hosts", unix.MOUNT_ATTR_RDONLY, false},
		{"/etc/hostname", unix.MOUNT_ATTR_RDONLY, false},
		{"/etc/resolv.conf", unix.MOUNT_ATTR_RDONLY, false},
		{"/etc/machine-id", unix.MOUNT_ATTR_RDONLY, false},
		{"/etc/localtime", unix.MOUNT_ATTR_RDONLY, false},
	}
}

// gather opens what of the node the container shows. Later it could not be found any more.
func gather(r *step.Request, user user, mounts []mount.Mount) (view, error) {
	var out view
	for _, s := range system() {
		tree, err := rootfs.Tree(s.path, s.recursive)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("opening %s: %w", s.path, err)
		}
		out = append(out, shown{tree: tree, target: s.path, create: true, attributes: rootfs.Attributes{Set: s.set, Recursive: s.recursive}, optional: !s.recursive})
	}
	for _, target := range []string{"/tmp", "/var/run", "/var/lock"} {
		tree, err := rootfs.Tmpfs(map[string]string{"mode": "755"})
		if err != nil {
			return nil, err
		}
		out = append(out, shown{tree: tree, target: target, create: true})
	}
	if r.MountHome != nil && *r.MountHome {
		tree, err := rootfs.Tree(user.hostHome, true) // what is mounted below cannot be left out in a user namespace
		if err != nil {
			return nil, fmt.Errorf("--container-mount-home: opening %s: %w", user.hostHome, err)
		}
		out = append(out, shown{tree: tree, target: user.hostHome, create: true, attributes: rootfs.Attributes{Set: unix.MOUNT_ATTR_NOSUID, Recursive: true}})
	}
	if r.Script != "" {
		tree, err := rootfs.Tree(r.Script, false)
		if err != nil {
			return nil, fmt.Errorf("opening the script of the job: %w", err)
		}
		out = append(out, shown{tree: tree, target: r.Script, create: true, attributes: rootfs.Attributes{Set: unix.MOUNT_ATTR_RDONLY}})
	}
	for _, m := range mounts {
		s, err := open(m, r.Directory)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// open opens the source of a mount of the user.
func open(m mount.Mount, directory string) (shown, error) {
	flags, err := flagsOf(m.Flags)
	if err != nil {
		return shown{}, fmt.Errorf("--container-mounts: %s: %w", m, err)
	}
	if m.Kind == mount.Umount {
		return shown{target: m.Target, detach: true, optional: flags.optional}, nil
	}
	out := shown{target: m.Target, create: flags.create, attributes: flags.attributes, optional: flags.optional}
	if m.Kind == mount.Tmpfs {
		out.tree, err = rootfs.Tmpfs(flags.data)
	} else {
		source := absolute(m.Source, directory)
		out.tree, err = rootfs.Tree(source, flags.recursive)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
			err = &mount.MissingSourceError{Path: source}
			if flags.optional {
				return shown{optional: true}, nil
			}
			return shown{}, err
		}
	}
	if err != nil {
		return shown{}, fmt.Errorf("could not add mount entry: %s: %w", m, err)
	}
	return out, nil
}

// show mounts all in a root.
func (v view) show(root *rootfs.Root, user user) error {
	// In a directory of somebody else the user writes no files.
	if err := user.write(root); err != nil && !errors.Is(err, os.ErrPermission) {
		return err
	}
	for _, s := range v {
		var err error
		switch {
		case s.detach:
			err = root.Detach(s.target)
		case s.tree != nil:
			if err = s.attributes.Apply(s.tree); err == nil {
				err = root.Mount(s.tree, s.target, s.create)
			}
			_ = s.tree.Close()
		}
		if err != nil && !s.optional {
			return fmt.Errorf("mounting %s in the container: %w", s.target, err)
		}
	}
	return nil
}
