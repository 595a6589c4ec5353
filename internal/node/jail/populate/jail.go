// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package populate

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// users reports whether an entry of the jail belongs to its users. It is left alone, with everything below it, when a jail is
// filled over what is there. The list is in docs/users/slurmcluster-jail.md.
func users(rel string) bool {
	switch rel {
	case "home", "root", "srv", "opt/soperator-home", "opt/soperator-outputs", "var/mail", "var/spool/cron",
		"etc/passwd", "etc/group", "etc/shadow", "etc/gshadow", "etc/subuid", "etc/subgid",
		"etc/passwd-", "etc/group-", "etc/shadow-", "etc/gshadow-", "etc/subuid-", "etc/subgid-",
		"etc/sudoers", "etc/sudoers.d", "etc/machine-id", "etc/localtime", "etc/timezone", "etc/krb5.keytab", "etc/slurm":
		return true
	}
	return strings.HasPrefix(rel, "etc/ssh/ssh_host_")
}

// onlyItself reports whether of a directory only itself is copied, for what is in it is of the container or of the moment.
func onlyItself(rel string) bool {
	switch rel {
	case "dev", "proc", "sys", "run", "tmp":
		return true
	}
	return false
}

// excluded reports whether an entry of the source is not copied.
func (c *copier) excluded(rel, name string) bool {
	switch rel {
	case ".dockerenv", "etc/hostname", "etc/hosts", "etc/resolv.conf", "lost+found", Marker, Sentinel:
		return true
	}
	if program, ok := strings.CutPrefix(rel, "usr/bin/"); ok && slices.Contains(c.SlurmPrograms, program) {
		return true
	}
	return strings.HasPrefix(name, temporaryPrefix) || slices.Contains(c.Exclude, "/"+rel)
}

// mountPoints makes what pods mount on in the jail. A starting pod makes nothing there.
func (c *copier) mountPoints() error {
	for _, dir := range []string{"dev", "proc", "run", "sys", "tmp", "mnt/host", "var/lib/extrausers", "var/lib/sss", "var/spool/slurmd"} {
		if err := c.mountDirectory(dir, true); err != nil {
			return err
		}
	}
	for _, file := range []string{"etc/hosts", "etc/resolv.conf"} {
		if err := c.mountFile(file); err != nil {
			return err
		}
	}
	for _, dir := range c.MountPoints {
		if err := c.mountDirectory(strings.TrimPrefix(path.Clean("/"+dir), "/"), false); err != nil {
			return err
		}
	}
	return nil
}

// mountDirectory makes a directory of the jail and those above it, unless something is there. It follows symbolic links,
// within the jail, as the one who mounts does.
func (c *copier) mountDirectory(rel string, mustBeDirectory bool) error {
	at := ""
	for name := range strings.SplitSeq(rel, "/") {
		parent := at
		at = path.Join(at, name)
		there, err := c.root.Path(at)
		if err == nil {
			info, err := there.Stat()
			if err = errors.Join(err, there.Close()); err != nil {
				return c.at(at, err)
			}
			if !info.IsDir() && (mustBeDirectory || at != rel) {
				return fmt.Errorf("/%s of the jail is no directory, so that pods cannot mount at /%s; move it away", at, rel)
			}
			continue
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		mode := uint32(0o755)
		if at == "tmp" {
			mode = 0o1777
		}
		if err := c.in(parent, func(dir int) error { return unix.Mkdirat(dir, name, mode) }); err != nil {
			return c.dangling(at, err)
		}
		if mode != 0o755 { // whatever the umask
			if err := c.in(parent, func(dir int) error { return chmod(dir, name, mode) }); err != nil {
				return c.at(at, err)
			}
		}
	}
	return nil
}

// mountFile makes an empty file, unless anything is there. A symbolic link may lead to what only pods have.
func (c *copier) mountFile(rel string) error {
	if err := c.mountDirectory(path.Dir(rel), true); err != nil {
		return err
	}
	err := c.in(path.Dir(rel), func(dir int) error {
		fd, err := unix.Openat(dir, path.Base(rel), unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o644)
		if err != nil {
			return err
		}
		return unix.Close(fd)
	})
	if errors.Is(err, unix.EEXIST) {
		return nil
	}
	return c.at(rel, err)
}

func (c *copier) dangling(rel string, err error) error {
	if errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("/%s of the jail is a symbolic link that leads nowhere, where pods need a directory; move it away", rel)
	}
	return c.at(rel, err)
}

// in makes a change in a directory of the jail.
func (c *copier) in(rel string, call func(dir int) error) error {
	dir, err := c.root.Path(path.Join("/", rel))
	if err != nil {
		return err
	}
	err = c.change(func() error { return call(int(dir.Fd())) })
	return errors.Join(err, dir.Close())
}

// slurmLinks lets the names of Slurm's programs lead to those of the pod, whose release is the cluster's.
func (c *copier) slurmLinks() error {
	if len(c.SlurmPrograms) == 0 {
		return nil
	}
	if err := c.mountDirectory("usr/bin", true); err != nil {
		return err
	}
	const temporary = temporaryPrefix + "new"
	for _, name := range c.SlurmPrograms {
		at := "usr/bin/" + name
		to := path.Join(c.SlurmDir, "bin", name)
		if is, err := c.root.Link(at); err == nil && is == to {
			continue
		}
		if err := c.in("usr/bin", func(dir int) error { return c.clear(dir, temporary) }); err != nil {
			return c.at(at, err)
		}
		if err := c.in("usr/bin", func(dir int) error { return unix.Symlinkat(to, dir, temporary) }); err != nil {
			return c.at(at, err)
		}
		if err := c.in("usr/bin", func(dir int) error { return unix.Renameat(dir, temporary, dir, name) }); err != nil {
			return c.at(at, err)
		}
	}
	return nil
}
