// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Command check-runner is Slurm's Prolog, Epilog and HealthCheckProgram on a worker: it runs the checks of a configuration, and drains or
// undrains the node by what they find.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/node/passivecheck"
	"github.com/coxswain-hpc/coxswain/internal/node/passivecheck/builtin"
	"github.com/coxswain-hpc/coxswain/internal/node/passivecheck/machine"
	"github.com/coxswain-hpc/coxswain/internal/node/passivecheck/runner"
)

// Where things are, unless flags or the environment set another place.
const (
	// usersConfig and usersDir are the two forms of the configuration of Soperator's charts, from a ConfigMap.
	usersConfig = "/opt/slurm_scripts/checks.json"
	usersDir    = "/opt/slurm_scripts"
	// ownConfig is the configuration of the image.
	ownConfig  = "/usr/local/lib/coxswain/checks/checks.json"
	outputsDir = "/opt/soperator-outputs"
	jailDir    = "/mnt/jail"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, invocation{Name: os.Args[0], Args: os.Args[1:], Environment: environment(os.Environ()), Now: time.Now(), Stdout: os.Stdout, Stderr: os.Stderr,
		Ask: askJail, Patience: jailPatience})
	stop()
	os.Exit(code)
}

func environment(entries []string) map[string]string {
	out := make(map[string]string, len(entries))
	for _, entry := range entries {
		name, value, _ := strings.Cut(entry, "=")
		out[name] = value
	}
	return out
}

// invocation is how the program was started.
type invocation struct {
	Name           string
	Args           []string
	Environment    map[string]string
	Now            time.Time
	Stdout, Stderr io.Writer
	// Ask returns when the file system of the jail answers, which may take as long as Patience.
	Ask      func(options) error
	Patience time.Duration
}

const usage = `The Coxswain check-runner runs the checks of a node before and after jobs.

Usage: check-runner [flags] [prolog|epilog|hc_program|validate]

  prolog, epilog, hc_program  Runs the checks of this context. Without an argument the context is CHECKS_CONTEXT, or the
                              name by which the program is called: prolog.sh, epilog.sh or hc_program.sh.
  validate                    Checks the configuration, prints every mistake, and exits with 1 if there is one.

Environment: CHECKS_CONTEXT; CHECKS_CONFIG, a list of checks as a file, or a directory with one *.json file for each check;
CHECKS_OUTPUTS_BASE_DIR, in the jail; CHECKS_RUNNER_OUTPUT, the file for the log of the program itself.
It exits with 1 when a check fails before a job, otherwise with 0: its own errors never keep a job from running.

`

// options are the settings of the command line and the environment.
type options struct {
	command, config, outputs, log, root, jail string
}

// environment returns what commands see: that of slurmd's script, and where things are, as the scripts of Soperator's chart export it.
func (o options) environment(given map[string]string) map[string]string {
	out := maps.Clone(given)
	out["CHECKS_CONFIG"], out["CHECKS_OUTPUTS_BASE_DIR"] = o.config, o.outputs
	return out
}

// run runs the program. Its own errors are reported, and let the job run.
func run(ctx context.Context, in invocation) int {
	o, err := parse(in)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(in.Stderr, "check-runner:", err)
	}
	if o.command == "validate" {
		if err != nil {
			return 1
		}
		return validate(o, in)
	}
	checkContext, _ := passivecheck.ParseContext(o.command)
	return guarded(ctx, in, o, checkContext, func(ctx context.Context) int { return inContext(ctx, in, o, checkContext, err) })
}

// inContext runs the checks of a context. mistake is what is wrong with the command line.
func inContext(ctx context.Context, in invocation, o options, checkContext passivecheck.Context, mistake error) (code int) {
	job, jobErr := passivecheck.JobOf(in.Environment)
	m, openErr := machine.Open(machine.Options{Root: o.root, Jail: o.jail, Environment: o.environment(in.Environment), Context: checkContext, Job: job, Now: in.Now})
	if openErr != nil {
		counter := passivecheck.Counter{Context: checkContext}
		fmt.Fprintln(in.Stderr, "check-runner:", errors.Join(openErr, runner.Count(o.root, counter), runner.WriteToPodLog(o.root, counter, openErr)))
		return 0
	}
	defer func() { _ = m.Close() }()
	r := &runner.Runner{Machine: m, ConfigDir: filepath.Dir(o.config), OutputsDir: o.outputs, Print: in.Stdout}
	if o.log == "" {
		o.log = filepath.Join(o.jail, o.outputs, "slurm_scripts", m.Name+".check_runner."+string(checkContext)+".out")
	}
	file, logErr := runner.OpenLog(m, o.outputs, o.log)
	output := in.Stderr
	if file != nil {
		defer func() { _ = file.Close() }()
		output = file
	}
	r.Log = slog.New(slog.NewTextHandler(output, nil))
	defer func() {
		if p := recover(); p != nil {
			r.Fault("", fmt.Errorf("it panicked: %v", p))
			code = 0
		}
	}()
	for _, fault := range []error{mistake, logErr, jobErr} {
		if fault != nil {
			r.Fault("", fault)
		}
	}
	if mistake != nil || jobErr != nil {
		return 0
	}
	return checks(ctx, r, o)
}

func checks(ctx context.Context, r *runner.Runner, o options) int {
	var err error
	if r.Checks, err = runner.Load(o.config); err != nil {
		r.Fault("", err)
	}
	if info, err := os.Stat(o.config); err == nil && info.IsDir() {
		r.ConfigDir = o.config
	}
	return r.Run(ctx)
}

// validate reports mistakes in a configuration.
func validate(o options, in invocation) int {
	found, err := runner.Load(o.config)
	if err != nil {
		fmt.Fprintln(in.Stderr, "check-runner:", err)
		return 1
	}
	fmt.Fprintf(in.Stdout, "%s: %d checks, no mistakes\n", o.config, len(found))
	return 0
}

// parse reads command line and environment.
func parse(in invocation) (options, error) {
	var o options
	fs := flag.NewFlagSet("check-runner", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.StringVar(&o.config, "config", in.Environment["CHECKS_CONFIG"], "`path` of the configuration (default: "+usersConfig+", the *.json files of "+usersDir+
		", or "+ownConfig+", the first that exists)")
	fs.StringVar(&o.root, "root", "/", "`directory` to use as the root of the container, for tests")
	fs.StringVar(&o.jail, "jail", jailDir, "`directory` at which the jail is mounted; without one, jobs have the files of the container")
	err := fs.Parse(in.Args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(in.Stderr, usage)
		fs.SetOutput(in.Stderr)
		fs.PrintDefaults()
		fmt.Fprintf(in.Stderr, "\nBuilt-in checks: %s\n", strings.Join(builtin.Names(), ", "))
		return o, err
	}
	o.outputs, o.log = in.Environment["CHECKS_OUTPUTS_BASE_DIR"], in.Environment["CHECKS_RUNNER_OUTPUT"]
	if o.outputs == "" {
		o.outputs = outputsDir
	}
	if o.config == "" {
		o.config = defaultConfig(o.root)
	}
	o.command = fs.Arg(0)
	if o.command == "" {
		o.command = in.Environment["CHECKS_CONTEXT"]
	}
	if o.command == "" {
		o.command = strings.TrimSuffix(filepath.Base(in.Name), ".sh")
	}
	_, known := passivecheck.ParseContext(o.command)
	switch {
	case err != nil:
		return o, err
	case fs.NArg() > 1:
		return o, fmt.Errorf("unexpected argument %q, see --help", fs.Arg(1))
	case !known && o.command != "validate":
		return o, fmt.Errorf("unknown context %q: give prolog, epilog or hc_program as the argument or in CHECKS_CONTEXT", o.command)
	}
	return o, nil
}

// defaultConfig returns what a user mounted, or that of the image.
func defaultConfig(root string) string {
	if _, err := os.Stat(filepath.Join(root, usersConfig)); err == nil {
		return filepath.Join(root, usersConfig)
	}
	if found, err := filepath.Glob(filepath.Join(root, usersDir, "*.json")); err == nil && len(found) > 0 {
		return filepath.Join(root, usersDir)
	}
	return filepath.Join(root, ownConfig)
}
