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
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/node/jail/populate"
	"github.com/coxswain-hpc/coxswain/internal/node/jail/view"
)

type populateOptions struct {
	root, source, slurm, job, serviceAccount, server string
	overwrite                                        bool
	mountPoints                                      []string
	workers                                          int
	interval                                         time.Duration
}

// snapshot is where a root file system is mounted to be used instead of the image's.
const snapshot = "/jail"

func runPopulate(ctx context.Context, args []string, output io.Writer) error {
	var o populateOptions
	err := parse("populate", args, output, func(f *flag.FlagSet) {
		f.StringVar(&o.root, "root", "/mnt/jail", "`directory` at which the jail is mounted")
		f.StringVar(&o.source, "source", "", "`directory` with the root file system to copy (default "+snapshot+" if something is mounted there, else /)")
		f.BoolVar(&o.overwrite, "overwrite", false, "overwrite the files of the jail, except those of its users")
		f.StringVar(&o.slurm, "slurm", "/usr/local/lib/coxswain/slurm", "`directory` with Slurm's programs, to which links in the jail lead; no links are made if it does not exist")
		f.Func("mount-point", "`directory` to make in the jail for pods to mount on; may be given several times", func(path string) error {
			if !filepath.IsAbs(path) {
				return errors.New("must be absolute")
			}
			o.mountPoints = append(o.mountPoints, path)
			return nil
		})
		f.IntVar(&o.workers, "workers", max(4, 2*runtime.NumCPU()), "how many files are copied at a time")
		f.StringVar(&o.job, "job", "", "`name` of this pod's Job, on which the progress is written; empty: none")
		f.StringVar(&o.serviceAccount, "service-account", "/var/run/secrets/kubernetes.io/serviceaccount", "`directory` with the namespace, token and certificate for writing to the Job")
		f.StringVar(&o.server, "server", "https://kubernetes.default.svc", "`URL` of the API server for writing to the Job")
		f.DurationVar(&o.interval, "interval", 5*time.Second, "how often the progress is written")
	})
	if err != nil {
		return err
	}
	return fill(ctx, o, slog.New(slog.NewTextHandler(output, nil)))
}

func fill(ctx context.Context, o populateOptions, log *slog.Logger) error {
	in, err := populateInput(o)
	if err != nil {
		return err
	}
	in.Log = func(format string, args ...any) { log.Info(fmt.Sprintf(format, args...)) }
	begun := in.Now
	progress := &populate.Progress{}
	ctx, stop := context.WithCancel(ctx)
	told := make(chan struct{})
	go func() {
		defer close(told)
		(&teller{options: o, log: log, progress: progress, begun: begun}).run(ctx)
	}()
	ended := make(chan error, 1)
	go func() { ended <- populate.Run(in, progress) }()
	select {
	case err = <-ended:
	case <-ctx.Done():
		err = errors.New("stopped before the jail was complete; the next run continues") // what is half written is so under a temporary name
	}
	stop()
	<-told
	return err
}

// jailPatience is how long a run waits for the end of another one: the 30 s that a pod has to end, and a kubelet that has much to do.
const jailPatience = 2 * time.Minute

// populateInput finds out what to copy.
func populateInput(o populateOptions) (populate.Options, error) {
	in := populate.Options{
		Source: o.source, Jail: o.root, Overwrite: o.overwrite, MountPoints: o.mountPoints, Workers: o.workers,
		SlurmDir: view.SlurmDir, Now: time.Now(), Patience: jailPatience,
	}
	mountinfo, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return in, fmt.Errorf("reading the mounts of the container: %w", err)
	}
	points := view.MountPoints(string(mountinfo))
	if !slices.Contains(points, filepath.Clean(o.root)) {
		return in, fmt.Errorf("nothing is mounted at %s, where the volume of the jail should be", o.root)
	}
	if in.Source == "" {
		in.Source = "/"
		if slices.Contains(points, snapshot) {
			in.Source = snapshot
		}
	}
	if in.Source == "/" {
		// What this image has besides a root file system.
		in.Exclude = []string{filepath.Clean(o.root), filepath.Clean(o.slurm), "/usr/local/bin/jail", "/usr/local/bin/populate-jail"}
	}
	programs, err := os.ReadDir(filepath.Join(o.slurm, "bin"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return in, fmt.Errorf("listing Slurm's programs for the jail: %w", err)
	}
	for _, program := range programs {
		in.SlurmPrograms = append(in.SlurmPrograms, program.Name())
	}
	return in, nil
}

// teller reports progress, in the log and on the Job.
type teller struct {
	options  populateOptions
	log      *slog.Logger
	progress *populate.Progress
	begun    time.Time
	told     bool
}

func (t *teller) run(ctx context.Context) {
	ticker := time.NewTicker(t.options.interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			// Once more at the end: the last state is what users see.
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.options.interval)
			t.tell(last)
			cancel()
			return
		case <-ticker.C:
			call, cancel := context.WithTimeout(ctx, t.options.interval)
			t.tell(call)
			cancel()
		}
	}
}

func (t *teller) tell(ctx context.Context) {
	files, bytes, seconds := t.progress.Files(), t.progress.Bytes(), int64(time.Since(t.begun).Seconds())
	t.log.Info("Copying the root file system", "files", files, "bytes", bytes, "seconds", seconds)
	if t.options.job == "" {
		return
	}
	value := fmt.Sprintf(`{"files":%d,"bytes":%d,"seconds":%d}`, files, bytes, seconds)
	if err := annotate(ctx, t.options, value); err != nil && !t.told {
		t.told = true
		t.log.Warn("Could not write the progress to the Job; it is only in this log", "error", err)
	}
}

// cut shortens a server's answer to what fits a line.
func cut(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	return text[:min(len(text), 300)]
}
