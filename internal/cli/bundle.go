// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"

	"github.com/coxswain-hpc/coxswain/internal/cli/redact"
)

const bundleHelp = `Writes an archive for somebody who helps you with a Slurm cluster. From the namespace it contains:

  objects/      the objects of both API groups, pods, workloads, Services, ConfigMaps (slurm.conf is in one) and claims, and Nodes
  events.txt    events, the newest last
  logs/         of each container, and of its previous run if it was restarted; of at most --workers workers, those that are not ready first
  slurm/        the output of scontrol, sdiag, squeue and sinfo in each slurmctld
  secrets.txt   names, types, keys and sizes of Secrets
  versions.txt  of the plugin, of Kubernetes and of the images
  errors.txt    what could not be read, and which right that needs

It contains everything in the namespace, including objects of other programs, but no value of a Secret. Passwords, tokens and private keys
are removed from all texts: what looks like one, and what equals a value of a Secret that you may read. Still, look through the archive
before you send it: it contains names of users, nodes and jobs, and may still contain a password that looks like an ordinary word.

Rights: each is optional. "get" and "list" on what is read, "get" on pods/log, and "get" and "create" on pods/exec for slurm/.

Exit codes: 0 everything was read, 1 an error, 2 the archive is written, and errors.txt lists what is missing.`

const bundleExamples = `  # Writes slurm-NAMESPACE-TIME.tar.gz, which only you can read
  kubectl slurm support-bundle -n slurm

  # Look through it
  kubectl slurm support-bundle --file=bundle.tar.gz && tar tzf bundle.tar.gz`

// bundleOptions are flags.
type bundleOptions struct {
	file          string
	tail, workers int64
}

func (s *session) bundleCommand(ctx context.Context) *cobra.Command {
	var options bundleOptions
	command := &cobra.Command{
		Use: "support-bundle", Short: "Write an archive for support, without secrets", Long: bundleHelp, Example: bundleExamples, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return s.writeBundle(ctx, options) },
	}
	command.Flags().StringVarP(&options.file, "file", "f", "", "Archive to write, or - for standard output. The file must not exist.")
	command.Flags().Int64Var(&options.tail, "tail", 10000, "Lines from the end of each log.")
	command.Flags().Int64Var(&options.workers, "workers", 20, "Number of workers whose logs are read.")
	return command
}

func (s *session) writeBundle(ctx context.Context, options bundleOptions) (err error) {
	c, err := s.connect()
	if err != nil {
		return err
	}
	clientset, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	now := s.Now().UTC()
	name := fmt.Sprintf("slurm-%s-%s", c.namespace, now.Format("20060102-150405"))
	if options.file == "" {
		options.file = name + ".tar.gz"
	}
	out := s.Streams.Out
	if options.file != "-" {
		file, err := os.OpenFile(options.file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return fmt.Errorf("making the archive: %w", err)
		}
		defer func() {
			if closing := file.Close(); closing != nil && err == nil {
				err = fmt.Errorf("writing %s: %w", options.file, closing)
			}
		}()
		out = file
	}
	b := &bundle{
		session: s, connection: c, clientset: clientset, options: options, archive: newArchive(out, name, now), redactor: redact.New(),
		progress: progress{out: s.Streams.ErrOut, now: s.Now, started: s.Now()},
	}
	if err := b.gather(ctx); err != nil {
		return err
	}
	if options.file != "-" {
		fmt.Fprintf(s.Streams.ErrOut, "%s is written. Look through it before you send it.\n", options.file)
	}
	if len(b.problems) > 0 {
		return exit{code: exitWrong, err: fmt.Errorf("%d things could not be read: see errors.txt in the archive. The first: %s", len(b.problems), b.problems[0])}
	}
	return nil
}

// Progress is printed once it has taken this long, and then as often.
const (
	quietTime        = 2 * time.Second
	progressInterval = time.Second
)

// progress prints what is being done when that takes a while.
type progress struct {
	out           io.Writer
	now           func() time.Time
	started, last time.Time
}

func (p *progress) say(format string, args ...any) {
	now := p.now()
	if now.Sub(p.started) < quietTime || now.Sub(p.last) < progressInterval {
		return
	}
	p.last = now
	fmt.Fprintf(p.out, "Reading "+format+"\n", args...)
}
