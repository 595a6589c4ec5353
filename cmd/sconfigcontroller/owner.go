// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/coxswain-hpc/coxswain/internal/node/jail"
)

// configDir is where users of a jail expect files about Slurm.
const configDir = "/etc/slurm"

// owner is a user and a group by their numbers.
type owner struct{ uid, gid int }

// parseOwner reads "UID:GID".
func parseOwner(text string) (owner, error) {
	uid, gid, _ := strings.Cut(text, ":")
	u, err := strconv.ParseUint(uid, 10, 31)
	g, err2 := strconv.ParseUint(gid, 10, 31)
	if err != nil || err2 != nil {
		return owner{}, fmt.Errorf("%q does not have the form UID:GID", text)
	}
	return owner{int(u), int(g)}, nil
}

// giveConfigDirectory gives the directory /etc/slurm of the jail at dir to somebody, and makes it if it is missing. What is in it
// keeps its owner: who owns a directory may replace the files there.
func giveConfigDirectory(dir string, to owner) error {
	root, err := jail.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	if err := root.Mkdir(configDir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := root.Lstat(configDir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s of the jail is not a directory (mode %s): remove it in the jail, or leave runAsUid and runAsGid empty", configDir, info.Mode().Type())
	}
	return root.Chown(configDir, to.uid, to.gid)
}
