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
	"os"
	"path/filepath"
	"slices"

	"github.com/coxswain-hpc/coxswain/internal/node/jail"
	"github.com/coxswain-hpc/coxswain/internal/node/jail/view"
)

// pluginDirs are where Debian and those who build Slurm themselves have its plugins.
const pluginDirs = "/usr/lib/*/slurm*"

type mountOptions struct {
	root, upper, runDir, slurm string
	binds                      []string
	rootKey                    bool
}

func runMount(_ context.Context, args []string, output io.Writer) error {
	var o mountOptions
	err := parse("mount", args, output, func(f *flag.FlagSet) {
		f.StringVar(&o.root, "root", "/mnt/jail", "`directory` at which the jail is mounted")
		f.StringVar(&o.upper, "upper", "/mnt/jail.upper", "`directory` below which the mounts for the jail are")
		f.StringVar(&o.runDir, "run", "/run/jail", "`directory` of the pod that becomes /run")
		f.StringVar(&o.slurm, "slurm", "/usr/local/lib/coxswain/slurm", "`directory` with Slurm's programs for the jail; they are left out if it does not exist")
		f.BoolVar(&o.rootKey, "root-key", false, "make a key pair with which root of the jail goes on to workers, unless there is one")
		f.Func("bind", "`path` of the pod that appears at the same place; may be given several times", func(path string) error {
			if !filepath.IsAbs(path) {
				return errors.New("must be absolute")
			}
			o.binds = append(o.binds, path)
			return nil
		})
	})
	if err != nil {
		return err
	}
	return mount(o, output)
}

// mount assembles the view of the jail. Without directories for outputs and a key pair of root logins and jobs work, though some scripts do
// not.
func mount(o mountOptions, output io.Writer) error {
	in := view.Input{Upper: o.upper, Run: o.runDir, Binds: o.binds}
	mountinfo, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return fmt.Errorf("reading the mounts of the container: %w", err)
	}
	in.MountPoints = view.MountPoints(string(mountinfo))
	if !slices.Contains(in.MountPoints, filepath.Clean(o.root)) {
		return fmt.Errorf("nothing is mounted at %s, where the volume of the jail should be", o.root)
	}
	if in.Plugins, err = filepath.Glob(pluginDirs); err != nil {
		return fmt.Errorf("looking for Slurm's plugins: %w", err)
	}
	programs, err := os.ReadDir(filepath.Join(o.slurm, "bin"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fmt.Errorf("listing Slurm's programs for the jail: %w", err)
	default:
		in.Slurm = o.slurm
		for _, program := range programs {
			in.Programs = append(in.Programs, program.Name())
		}
	}
	root, err := jail.Open(o.root)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	if err := (&view.Assembler{Jail: root, Run: o.runDir}).Assemble(view.Plan(in)); err != nil {
		return err
	}
	if err := view.MakeOutputDirs(root); err != nil {
		_, _ = fmt.Fprintln(output, err)
	}
	if o.rootKey {
		if err := view.MakeRootKey(root); err != nil {
			_, _ = fmt.Fprintln(output, err)
		}
	}
	return nil
}
