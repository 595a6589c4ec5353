// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
)

const execHelp = `Runs a program in a ready login pod.

With --user it runs as that user of the login pod, in the user's home, and in the jail if there is one. Without --user it runs as root of
the container, as with kubectl exec; if there is a jail, it cannot mount anything. It is not a session of sshd: PAM makes no home directory
and sets no limits.

File names in arguments refer to files in the login pod.

Exit codes: that of the program; 1 also when it could not be run.`

const execExamples = `  # As alice
  kubectl slurm exec --user alice -- sacctmgr show user alice

  # A script on this machine
  kubectl slurm exec --user alice --stdin -- bash < job.sh`

const sshHelp = `Opens the login shell of a user in a ready login pod, or runs a command there.

It goes through the API server, with your right to pods/exec: no key, no Service and no sshd is needed. It is not a session of sshd:
PAM makes no home directory and sets no limits.

Exit codes: that of the shell or command; 1 also when it could not be run.`

const sshExamples = `  kubectl slurm ssh --user alice

  # In a pod of one of several LoginSets
  kubectl slurm ssh --user alice --login demo-login`

// errNoUser is the error of a shell without a user.
var errNoUser = errors.New("--user NAME is required")

// remoteCommands are ssh, exec, and programs of Slurm by their own names.
func (s *session) remoteCommands(ctx context.Context) []*cobra.Command {
	r := remote{}
	run := &cobra.Command{
		Use: "exec [--stdin] [--tty] -- COMMAND [ARG...]", Short: "Run a program in a login pod", Long: execHelp, Example: execExamples,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			r.user, r.command = s.user, args
			return s.runRemote(ctx, r)
		},
	}
	run.Flags().BoolVarP(&r.stdin, "stdin", "i", false, "Pass standard input on to the program.")
	run.Flags().BoolVarP(&r.tty, "tty", "t", false, "Give the program a terminal.")
	run.Flags().SetInterspersed(false)
	shell := &cobra.Command{
		Use: "ssh [-- COMMAND [ARG...]]", Short: "Open a shell in a login pod", Long: sshHelp, Example: sshExamples,
		RunE: func(_ *cobra.Command, args []string) error {
			if s.user == "" {
				return errNoUser
			}
			tty := len(args) == 0 && isTerminal(s.Streams.In)
			return s.runRemote(ctx, remote{user: s.user, command: args, stdin: true, tty: tty})
		},
	}
	shell.Flags().SetInterspersed(false)
	out := []*cobra.Command{run, shell}
	for _, program := range []string{"sbatch", "srun", "salloc", "scancel", "scontrol", "sinfo", "squeue", "sacct"} {
		out = append(out, s.slurmCommand(ctx, program))
	}
	for _, command := range out {
		command.Annotations = map[string]string{remoteAnnotation: ""}
	}
	return out
}

// remoteAnnotation marks commands that --user and --login are for.
const remoteAnnotation = "remote"

// slurmCommand runs a program of Slurm. All flags behind its name are the program's.
func (s *session) slurmCommand(ctx context.Context, program string) *cobra.Command {
	return &cobra.Command{
		Use: program + " [ARG...]", Short: "Run " + program + " in a login pod", DisableFlagParsing: true,
		Long: "Runs " + program + " in a ready login pod. Flags after the name are passed to " + program +
			". Put --user, --login and the flags of kubectl before it.\n\nSee kubectl slurm exec --help.",
		Example: "  kubectl slurm --user alice " + program + " --help",
		RunE: func(_ *cobra.Command, args []string) error {
			// Only these read a script, or what a job reads.
			stdin := (program == "sbatch" || program == "srun" || program == "salloc") && !isTerminal(s.Streams.In)
			return s.runRemote(ctx, remote{user: s.user, command: append([]string{program}, args...), stdin: stdin})
		},
	}
}

// checkRemoteFlags refuses --user and --login where they have no effect: kubectl has a --user of another meaning.
func checkRemoteFlags(command *cobra.Command, _ []string) error {
	if _, ok := command.Annotations[remoteAnnotation]; !ok && (command.Flags().Changed("user") || command.Flags().Changed("login")) {
		return errors.New("--user and --login are for programs in login pods: see kubectl slurm exec --help. " +
			"To use another user of the kubeconfig, give --context")
	}
	return nil
}
