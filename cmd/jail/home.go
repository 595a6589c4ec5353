// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"io"

	"github.com/coxswain-hpc/coxswain/internal/node/jail"
	"github.com/coxswain-hpc/coxswain/internal/node/jail/home"
)

func runHome(_ context.Context, args []string, output io.Writer) error {
	var dir string
	var account home.Account
	err := parse("home", args, output, func(f *flag.FlagSet) {
		f.StringVar(&dir, "root", "/mnt/jail", "`directory` at which the jail is mounted")
		f.StringVar(&account.Home, "path", "", "`path` of the home in the jail")
		f.IntVar(&account.UID, "uid", 0, "`number` of the user, who owns it")
		f.IntVar(&account.GID, "gid", 0, "`number` of the user's group")
	})
	if err != nil {
		return err
	}
	root, err := jail.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	made, err := home.Make(root, account)
	if made {
		fmt.Fprintf(output, "made the home %s\n", account.Home)
	}
	return err
}
