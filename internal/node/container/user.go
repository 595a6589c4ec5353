// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package container

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	accounts "os/user"
	"strconv"
	"strings"

	"github.com/coxswain-hpc/coxswain/internal/node/container/rootfs"
	"github.com/coxswain-hpc/coxswain/internal/node/container/step"
)

// user is who the tasks are.
type user struct {
	name     string
	uid, gid uint32
	// hostHome is the home directory on the node, and home that in the container.
	hostHome, home string
	// root is true for a user who is root in the container.
	root bool
}

func userOf(r *step.Request, job step.Environment) user {
	// A job need not have variables, and those of a batch script are fewer than those of a step.
	account, err := accounts.LookupId(strconv.FormatUint(uint64(r.UID), 10))
	if err != nil {
		account = &accounts.User{}
	}
	u := user{
		name: cmp.Or(job["SLURM_JOB_USER"], job["USER"], account.Username, "user"), uid: r.UID, gid: r.GID, root: r.RemapRoot != nil && *r.RemapRoot,
		hostHome: cmp.Or(job["HOME"], account.HomeDir, "/"),
	}
	u.home = u.hostHome
	if u.root {
		u.home = "/root"
	}
	return u
}

// nobody is who owns the files of all other users (proc_sys_kernel(5), overflowuid).
const nobody = 65534

// entries returns the lines of passwd(5) and group(5) for who is seen in the container. Name and home come from the job's environment, and
// become part of no line where they would be more than a field.
func (u user) entries() (passwd, group []string) {
	if !u.root && u.uid != 0 {
		passwd = append(passwd, fmt.Sprintf("%s:x:%d:%d::%s:/bin/sh", field(u.name, "user"), u.uid, u.gid, field(u.home, "/")))
	}
	if !u.root && u.gid != 0 {
		group = append(group, fmt.Sprintf("%s:x:%d:", field(u.name, "user"), u.gid))
	}
	passwd = append(passwd, "root:x:0:0:root:/root:/bin/sh", fmt.Sprintf("nobody:x:%d:%d:nobody:/:/usr/sbin/nologin", nobody, nobody))
	return passwd, append(group, "root:x:0:", fmt.Sprintf("nogroup:x:%d:", nobody))
}

func field(text, instead string) string {
	if strings.ContainsAny(text, ":\n\x00") {
		return instead
	}
	return text
}

// write lets programs of the container find the user by number and name.
func (u user) write(root *rootfs.Root) error {
	passwd, group := u.entries()
	return errors.Join(prepend(root, "/etc/passwd", passwd), prepend(root, "/etc/group", group))
}

// prepend puts lines in front of those that a file of the image has. The first entry of a name or a number counts.
func prepend(root *rootfs.Root, name string, lines []string) error {
	was, err := root.ReadFile(name)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("reading %s of the image: %w", name, err)
	}
	return root.WriteFile(name, append([]byte(strings.Join(lines, "\n")+"\n"), bytes.TrimPrefix(was, []byte("\n"))...))
}
