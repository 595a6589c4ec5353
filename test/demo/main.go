// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Command demo shows Coxswain from nothing to jobs that have run: a local Kubernetes, images, the operator, the sample
// SlurmCluster, and a user who logs in by ssh. It can be run again and again; "make demo" is how it is meant to be called.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/coxswain-hpc/coxswain/test/login"
	"github.com/coxswain-hpc/coxswain/test/walk"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	interrupted := ctx.Err() != nil
	stop()
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
	case interrupted:
		fmt.Fprintln(os.Stderr, "demo: interrupted; run it again to go on, or \"make cluster-down\" to clean up")
		os.Exit(130)
	default:
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// demo is one run.
type demo struct {
	walk.Options
	namespace string
	timeout   time.Duration
	progress  *walk.Progress
	k         *walk.Kubernetes
	sample    *walk.Sample
	key       *login.Key
	door      *walk.Door
	// before is how often containers had been restarted when this run began.
	before walk.Restarts
	// keep is the directory of what stays for the user: the key, and ssh's configuration.
	keep string
}

func run(ctx context.Context, args []string) error {
	d := demo{progress: walk.NewProgress(os.Stdout)}
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.StringVar(&d.Kubeconfig, "kubeconfig", "", "`file` that leads to a Kubernetes of yours; default: a local one is started")
	flags.IntVar(&d.Nodes, "nodes", 2, "`number` of nodes of the local Kubernetes")
	flags.StringVar(&d.Images.Registry, "registry", walk.LocalRegistry, "`registry` of the images")
	flags.StringVar(&d.Images.Tag, "tag", "dev", "`tag` of the images")
	flags.StringVar(&d.namespace, "namespace", "slurm", "`namespace` of the SlurmCluster")
	flags.DurationVar(&d.timeout, "timeout", 5*time.Minute, "`time` within which the SlurmCluster must be available")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q, see --help", flags.Arg(0))
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return fmt.Errorf("finding the cache directory: %w", err)
	}
	d.keep = filepath.Join(cache, "coxswain", "demo")
	if d.Repository, err = walk.FindRepository(); err != nil {
		return err
	}
	return d.run(ctx)
}

func (d *demo) run(ctx context.Context) error {
	var err error
	if d.k, err = walk.Bring(ctx, d.progress, d.Options); err != nil {
		return err
	}
	if d.before, err = d.k.RestartsIn(ctx, d.namespaces()...); err != nil {
		return err
	}
	if err := d.progress.Step(ctx, "SlurmCluster: applying config/samples/slurmcluster.yaml", d.cluster); err != nil {
		return err
	}
	if err := d.progress.Step(ctx, "Jobs: as "+d.sample.User+", over ssh", d.jobs); err != nil {
		return errors.Join(err, d.k.Report(ctx, d.namespace))
	}
	if err := d.progress.Step(ctx, "Pods: all have to be ready, and none restarted", d.pods); err != nil {
		return err
	}
	d.progress.Say("It works. %s.", d.progress.Summary())
	return d.goOn(ctx)
}

// cluster applies the sample and waits for it.
func (d *demo) cluster(ctx context.Context) error {
	var err error
	if d.key, err = login.EnsureKey(filepath.Join(d.keep, "id_ed25519")); err != nil {
		return err
	}
	if d.sample, err = walk.ReadSample(d.Repository, d.namespace, d.key); err != nil {
		return err
	}
	if err := d.k.EnsureNamespace(ctx, d.namespace); err != nil {
		return err
	}
	if err := d.k.ApplyManifest(ctx, d.sample.Manifest); err != nil {
		return err
	}
	d.progress.Say("  applied %s to namespace %s, with an ssh key for %s", d.sample.Name().Name, d.namespace, d.sample.User)
	if err := walk.AwaitAvailable(ctx, d.k, d.progress, d.sample.Name(), d.timeout); err != nil {
		return err
	}
	d.progress.Say("  SlurmCluster %s is Available", d.sample.Name().Name)
	d.door, err = walk.DoorOf(ctx, d.k, d.sample.Name())
	return err
}

// namespaces returns those in which the operator and the cluster run.
func (d *demo) namespaces() []string { return []string{walk.Operator.Namespace, d.namespace} }

// pods sees that what runs also runs well, and shows it.
func (d *demo) pods(ctx context.Context) error {
	if err := d.k.AwaitSound(ctx, d.before, time.Minute, d.namespaces()...); err != nil {
		return err
	}
	table, err := d.k.PodTable(ctx, d.namespaces()...)
	if err != nil {
		return err
	}
	d.progress.Block(table)
	return nil
}
