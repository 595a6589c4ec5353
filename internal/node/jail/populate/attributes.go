// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package populate

import (
	"errors"
	"strings"

	"golang.org/x/sys/unix"
)

// attributes copies the extended attributes, such as access control lists and file capabilities. What the jail's file
// system does not take is logged once: NFS takes next to none.
func (c *copier) attributes(in, out int) error {
	names, err := attributeNames(in)
	if err != nil {
		return err
	}
	for _, name := range names {
		// The kernel and the container runtime write these two by themselves.
		if name == "security.selinux" || strings.HasPrefix(name, "trusted.overlay.") {
			continue
		}
		value, err := attribute(in, name)
		if errors.Is(err, unix.ENODATA) || errors.Is(err, unix.EOPNOTSUPP) {
			continue
		}
		if err != nil {
			return err
		}
		err = c.change(func() error { return unix.Fsetxattr(out, name, value, 0) })
		if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EPERM) {
			c.tellOnce(name, err)
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// tellOnce logs once for each namespace of attributes that the jail does not take it.
func (c *copier) tellOnce(name string, err error) {
	namespace, _, _ := strings.Cut(name, ".")
	if _, told := c.told.LoadOrStore(namespace, true); !told {
		c.log("The file system of the jail does not take extended attributes such as %s (%v); they are left out", name, err)
	}
}

func attributeNames(fd int) ([]string, error) {
	var few [256]byte
	list := few[:]
	n, err := unix.Flistxattr(fd, list)
	for errors.Is(err, unix.ERANGE) {
		list = make([]byte, 1<<16) // the most that Linux allows
		n, err = unix.Flistxattr(fd, list)
	}
	if errors.Is(err, unix.EOPNOTSUPP) || err == nil && n == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return strings.Split(strings.TrimSuffix(string(list[:n]), "\x00"), "\x00"), nil
}

func attribute(fd int, name string) ([]byte, error) {
	value := make([]byte, 256)
	n, err := unix.Fgetxattr(fd, name, value)
	if errors.Is(err, unix.ERANGE) {
		value = make([]byte, 1<<16)
		n, err = unix.Fgetxattr(fd, name, value)
	}
	if err != nil {
		return nil, err
	}
	return value[:n], nil
}
