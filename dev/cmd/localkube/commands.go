// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/coxswain-hpc/coxswain/dev/internal/binaries"
	"github.com/coxswain-hpc/coxswain/dev/internal/cluster"
	"github.com/coxswain-hpc/coxswain/dev/internal/layout"
	"github.com/coxswain-hpc/coxswain/dev/internal/progress"
)

func commands() map[string]func(context.Context, []string) error {
	return map[string]func(context.Context, []string) error{
		"up":         up,
		"down":       down,
		"status":     status,
		"load":       load,
		"kubeconfig": kubeconfig,
		"logs":       logs,
		"kubectl":    kubectl,
		"shell":      shell,
		"build":      build,
	}
}

// flags are the flags that all commands share.
type flags struct {
	*flag.FlagSet
	name string
}

func newFlags(command, arguments string) *flags {
	f := &flags{FlagSet: flag.NewFlagSet("localkube "+command, flag.ContinueOnError)}
	name := os.Getenv("LOCALKUBE_NAME")
	if name == "" {
		name = "coxswain"
	}
	f.StringVar(&f.name, "name", name, "`name` of the cluster")
	f.Usage = func() {
		_, _ = fmt.Fprintf(f.Output(), "usage: localkube %s [flags] %s\n", command, arguments)
		f.PrintDefaults()
	}
	return f
}

// parse parses the arguments; max is how many may remain, -1 for any number.
func (f *flags) parse(args []string, max int) error {
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return errUsage
	}
	if max >= 0 && f.NArg() > max {
		_, _ = fmt.Fprintf(f.Output(), "unexpected argument %q\n", f.Arg(max))
		f.Usage()
		return errUsage
	}
	return nil
}

func (f *flags) open() (*cluster.Cluster, error) {
	root, err := layout.Default()
	if err != nil {
		return nil, err
	}
	return cluster.Open(root, f.name, progress.New(os.Stderr))
}

func up(ctx context.Context, args []string) error {
	var o cluster.UpOptions
	f := newFlags("up", "")
	f.IntVar(&o.Nodes, "nodes", 0, fmt.Sprintf("number of nodes; a running cluster can grow (default that of the cluster, %d for a new one)", cluster.DefaultNodes))
	f.Func("node-names", "comma-separated `names` with a domain: a node of each there is to be, beside node-1, node-2, …", func(names string) error {
		o.Names = strings.Split(names, ",")
		return nil
	})
	f.BoolVar(&o.ControlPlaneOnly, "control-plane-only", false, "no nodes: needs no root and no packages")
	f.StringVar(&o.Source, "source", "", "directory of the Go module coxswain/dev (default: searched from the working directory upwards)")
	if err := f.parse(args, 0); err != nil {
		return err
	}
	c, err := f.open()
	if err != nil {
		return err
	}
	if err := c.Up(ctx, o); err != nil {
		return err
	}
	fmt.Println(c.Kubeconfig())
	return nil
}

func down(ctx context.Context, args []string) error {
	f := newFlags("down", "")
	purge := f.Bool("purge", false, "remove the logs and the nodes' images too")
	all := f.Bool("all", false, "all clusters")
	if err := f.parse(args, 0); err != nil {
		return err
	}
	if !*all {
		c, err := f.open()
		if err != nil {
			return err
		}
		return c.Down(ctx, *purge)
	}
	root, err := layout.Default()
	if err != nil {
		return err
	}
	clusters, err := root.Clusters()
	if err != nil {
		return err
	}
	var errs []error
	for _, l := range clusters {
		c, err := cluster.Open(root, l.Name, progress.New(os.Stderr))
		if err == nil {
			err = c.Down(ctx, *purge)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func status(ctx context.Context, args []string) error {
	f := newFlags("status", "")
	asJSON := f.Bool("json", false, "print JSON")
	if err := f.parse(args, 0); err != nil {
		return err
	}
	c, err := f.open()
	if err != nil {
		return err
	}
	s, err := c.Status(ctx)
	if err != nil {
		return err
	}
	if *asJSON {
		encoder := json.NewEncoder(os.Stdout)
		encoder.SetIndent("", "  ")
		err = encoder.Encode(s)
	} else {
		err = s.Print(os.Stdout, time.Now())
	}
	if err != nil {
		return err
	}
	if !s.Healthy {
		return errors.New("the cluster is not healthy (\"localkube up\" repairs it)")
	}
	return nil
}

func load(ctx context.Context, args []string) error {
	f := newFlags("load", "IMAGE.tar...")
	if err := f.parse(args, -1); err != nil {
		return err
	}
	if f.NArg() == 0 {
		f.Usage()
		return errUsage
	}
	c, err := f.open()
	if err != nil {
		return err
	}
	return c.Load(ctx, f.Args())
}

func kubeconfig(_ context.Context, args []string) error {
	f := newFlags("kubeconfig", "")
	raw := f.Bool("raw", false, "print the content instead of the path")
	if err := f.parse(args, 0); err != nil {
		return err
	}
	c, err := f.open()
	if err != nil {
		return err
	}
	b, err := os.ReadFile(c.Kubeconfig())
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("cluster %s: %w (try \"localkube up\")", f.name, cluster.ErrNotFound)
	}
	if err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	if *raw {
		fmt.Print(string(b))
	} else {
		fmt.Println(c.Kubeconfig())
	}
	return nil
}

func build(ctx context.Context, args []string) error {
	f := newFlags("build", "")
	var o binaries.Options
	f.BoolVar(&o.Kwok, "kwok", false, "build kwok too, the simulator of nodes")
	source := f.String("source", "", "directory of the Go module coxswain/dev")
	if err := f.parse(args, 0); err != nil {
		return err
	}
	root, err := layout.Default()
	if err != nil {
		return err
	}
	dir, err := binaries.FindSource(*source)
	if err != nil {
		return err
	}
	out, _, err := binaries.Locate(ctx, dir, root.Binaries())
	if err != nil {
		return err
	}
	if err := binaries.Build(ctx, dir, out, progress.New(os.Stderr), o); err != nil {
		return err
	}
	fmt.Println(filepath.Clean(out))
	return nil
}
