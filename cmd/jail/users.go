// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/node/jail"
	"github.com/coxswain-hpc/coxswain/internal/node/jail/users"
)

type usersOptions struct {
	root, extrausers, listed, etc, image, runDir string
	interval                                     time.Duration
}

func runUsers(ctx context.Context, args []string, output io.Writer) error {
	var o usersOptions
	err := parse("users", args, output, func(f *flag.FlagSet) {
		f.StringVar(&o.root, "root", "/mnt/jail", "`directory` at which the jail is mounted; empty with --listed alone")
		f.StringVar(&o.extrausers, "extrausers", "", "`directory` to write passwd and group to, without the accounts of the image; instead of --etc")
		f.StringVar(&o.listed, "listed", "", "`directory` with further lists of users, one subdirectory for each, with files passwd and group. Needs --extrausers; a user of the jail takes precedence")
		f.StringVar(&o.etc, "etc", "/etc", "`directory` whose passwd, group and shadow get the users of the jail behind those of the image")
		f.StringVar(&o.image, "image", "/run/users-of-the-image", "`directory` to keep the image's own passwd, group and shadow in")
		f.StringVar(&o.runDir, "run", "/run/jail", "`directory` that becomes /run of the jail; with --etc it also gets passwd and group, for Slurm's commands there")
		f.DurationVar(&o.interval, "interval", 2*time.Second, "how often to look for changes, because those made on other machines cause no events")
	})
	if err != nil {
		return err
	}
	switch {
	case o.listed != "" && o.extrausers == "":
		return errors.New("--listed needs --extrausers")
	case o.listed == "" && o.root == "":
		return errors.New("--root is empty, and there is no --listed")
	}
	v := users.View{Dir: o.extrausers, Log: slog.New(slog.NewTextHandler(output, nil))}
	if o.root != "" {
		root, err := jail.Open(o.root)
		if err != nil {
			return err
		}
		defer func() { _ = root.Close() }()
		v.Jail = root
	}
	if o.listed != "" {
		lists, err := os.OpenRoot(o.listed)
		if err != nil {
			return fmt.Errorf("opening the lists of users: %w", err)
		}
		defer func() { _ = lists.Close() }()
		v.Lists = lists.FS()
	}
	if o.extrausers == "" {
		v.Dir, v.WithShadow, v.Also = o.etc, true, o.runDir
		if v.Image, err = ownAccounts(o.etc, o.image); err != nil {
			return err
		}
	}
	v.Follow(ctx, o.interval)
	return nil
}

// ownAccounts returns the accounts of the image: those in etc when this runs first, which are kept for the next time.
func ownAccounts(etc, kept string) (users.Files, error) {
	var out users.Files
	if err := os.MkdirAll(kept, 0o700); err != nil {
		return out, fmt.Errorf("keeping the accounts of the image: %w", err)
	}
	for name, to := range map[string]*string{"passwd": &out.Passwd, "group": &out.Group, "shadow": &out.Shadow} {
		copied := filepath.Join(kept, name)
		data, err := os.ReadFile(copied) //nolint:gosec // a path of the command line
		if errors.Is(err, fs.ErrNotExist) {
			if data, err = os.ReadFile(filepath.Join(etc, name)); err == nil { //nolint:gosec // a path of the command line
				err = keep(copied, data)
			}
		}
		if err != nil {
			return out, fmt.Errorf("reading the accounts of the image: %w", err)
		}
		*to = string(data)
	}
	return out, nil
}

// keep writes a file whole or not at all.
func keep(path string, data []byte) error {
	if err := os.WriteFile(path+".next", data, 0o600); err != nil { //nolint:gosec // a path of the command line
		return err
	}
	return os.Rename(path+".next", path)
}
