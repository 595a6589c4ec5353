// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package runner runs the passive checks of a node one after the other, and carries out what follows from them. An error of its own never
// keeps a job from running: it is logged, in the log of the worker's pod as well, and counted.
package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/node/passivecheck"
	"github.com/coxswain-hpc/coxswain/internal/node/passivecheck/builtin"
	"github.com/coxswain-hpc/coxswain/internal/node/passivecheck/machine"
)

// Runner runs checks once.
type Runner struct {
	Machine *machine.Machine
	Checks  []passivecheck.Check
	// ConfigDir is the directory of the configuration, in which commands run.
	ConfigDir string
	// OutputsDir is the directory for the output of checks, in the jail.
	OutputsDir string
	// Log is the runner's own.
	Log *slog.Logger
	// Print is what slurmd reads: the standard output.
	Print io.Writer
}

// Run runs the checks and returns the exit code: 1 when a check failed before a job, which slurmd then does not start, else 0.
func (r *Runner) Run(ctx context.Context) int {
	if r.Machine.Job.Skips() {
		r.Log.Info("Skipped all checks, as the comment of the job says", "job", r.Machine.Job.ID)
		return 0
	}
	for _, check := range passivecheck.Order(r.Checks) {
		selection, err := r.choose(ctx, check)
		if err != nil {
			r.Fault(check.Name, err)
			continue
		}
		if !selection.Run {
			continue
		}
		begun := time.Now()
		result, err := r.run(ctx, check)
		if err != nil {
			r.Fault(check.Name, err)
			continue
		}
		r.tell(check, result, time.Since(begun))
		if err := r.react(ctx, check, result); err != nil {
			r.Fault(check.Name, err)
		}
		if result.State == passivecheck.Failed {
			return r.stop(check, result)
		}
	}
	return 0
}

// stop ends a run at the first failure.
func (r *Runner) stop(check passivecheck.Check, result passivecheck.Result) int {
	if r.Machine.Context != passivecheck.Prolog {
		return 0
	}
	fmt.Fprintf(r.Print, "print A check failed on %s: %s\n", r.Machine.Name, check.Reason(passivecheck.Prolog, result.Details))
	return 1
}

// choose returns whether a check runs, and finds out what the answer depends on.
func (r *Runner) choose(ctx context.Context, check passivecheck.Check) (passivecheck.Selection, error) {
	facts := passivecheck.Facts{Context: r.Machine.Context, Job: r.Machine.Job}
	for {
		selection := check.Select(facts)
		switch selection.Need {
		case passivecheck.NeedPlatform:
			platform, err := r.Machine.Platform(ctx)
			if err != nil {
				// Soperator takes such a node for one without GPUs.
				r.Fault(check.Name, err)
			}
			facts.Platform = &platform
		case passivecheck.NeedNode:
			node, err := r.Machine.Node(ctx)
			if err != nil {
				return selection, fmt.Errorf("%s: %w", selection.Why, err)
			}
			facts.Node = &node
		default:
			return selection, nil
		}
	}
}

// run runs one check.
func (r *Runner) run(ctx context.Context, check passivecheck.Check) (passivecheck.Result, error) {
	output, err := r.openOutput(check)
	if err != nil {
		// The check can do its work without it.
		r.Fault(check.Name, err)
	}
	var result passivecheck.Result
	if check.Builtin != "" {
		result, err = builtin.Find(check.Builtin)(ctx, r.Machine)
		if output != nil {
			fmt.Fprintf(output, "%s: %s\n", stateName(result.State, err), details(result, err))
		}
	} else {
		result, err = r.command(ctx, check, output)
	}
	if output != nil {
		err = errors.Join(err, output.Close())
	}
	if ctx.Err() != nil {
		// What was interrupted has found nothing.
		err = errors.Join(err, fmt.Errorf("running the check: %w", ctx.Err()))
	}
	return result, err
}

// react carries out what follows from a result.
func (r *Runner) react(ctx context.Context, check passivecheck.Check, result passivecheck.Result) error {
	action := check.React(result, r.Machine.Context, nil)
	if action.Need == passivecheck.NeedNode {
		node, err := r.Machine.Node(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", action.Why, err)
		}
		action = check.React(result, r.Machine.Context, &node)
	}
	if action.Kind == passivecheck.Nothing {
		if action.Why != "" && result.State == passivecheck.Failed {
			r.Log.Info("Left the node as it is", "check", check.Name, "why", action.Why)
		}
		return nil
	}
	if err := r.Machine.Change(ctx, action); err != nil {
		return err
	}
	said := map[passivecheck.ActionKind]string{
		passivecheck.Drain: "Drained the node", passivecheck.Undrain: "Undrained the node", passivecheck.SetComment: "Set the comment of the node",
	}
	r.Log.Info(said[action.Kind], "check", check.Name, "text", action.Text)
	return nil
}

// tell logs how a check ended. What is not available is logged once.
func (r *Runner) tell(check passivecheck.Check, result passivecheck.Result, took time.Duration) {
	if result.State == passivecheck.Unavailable {
		first, err := r.firstTime(check.Name)
		if err != nil {
			r.Fault(check.Name, err)
		}
		if !first {
			return
		}
	}
	args := []any{"check", check.Name, "result", stateName(result.State, nil), "details", result.Details, "ms", took.Milliseconds()}
	if r.Machine.Job != nil {
		args = append(args, "job", r.Machine.Job.ID)
	}
	r.Log.Info("Ran a check", args...)
}

// Fault logs and counts an internal error. name is that of the check, empty for an error of the program itself.
func (r *Runner) Fault(name string, err error) {
	if errors.Is(err, machine.ErrNoNode) {
		// So it is at each start of a worker.
		r.Log.Info("Left the node as it is", "check", name, "why", err)
		return
	}
	r.Log.Error("An internal error keeps no job from running", "check", name, "error", err)
	counter := passivecheck.Counter{Context: r.Machine.Context, Check: name}
	if err := Count(r.Machine.Root, counter); err != nil {
		r.Log.Error("The internal error could not be counted", "check", name, "error", err)
	}
	if err := WriteToPodLog(r.Machine.Root, counter, err); err != nil {
		r.Log.Error("The internal error could not be told in the log of the pod", "check", name, "error", err)
	}
}

func stateName(state passivecheck.State, err error) string {
	if err != nil {
		return "internal error"
	}
	return map[passivecheck.State]string{
		passivecheck.Passed: "passed", passivecheck.Failed: "failed", passivecheck.Skipped: "skipped", passivecheck.Unavailable: "skipped",
	}[state]
}

func details(result passivecheck.Result, err error) string {
	if err != nil {
		return err.Error()
	}
	return result.Details
}
