// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

const tokenHelp = `Prints a JSON web token. Whoever has it can call slurmrestd (header X-SLURM-USER-TOKEN) and run Slurm commands (variable SLURM_JWT) as USER.
The default of USER is the name of your account on this machine.

It makes a Token object, waits until the operator has issued the token, reads the Secret, and deletes the object again. The token is valid
until it expires; only a replacement of the key revokes it earlier. Users root and slurm, and numeric users, are refused unless the Secret
with the key allows them: see docs/users/token.md.

With --exec it runs "scontrol token" as root of a login pod. That needs no operator; slurmctld decides for which users root may get a token.

Rights: list controllers; create, watch and delete tokens; get secrets. With --exec: list pods; get and create pods/exec. The command checks
them before it makes anything.

Whoever sees the token can be that user: write it to a file of yours, or to a variable, and not to a log.

Exit codes: 0 the token was printed, 1 an error.`

const tokenExamples = `  # For a program that calls slurmrestd
  curl -H "X-SLURM-USER-TOKEN: $(kubectl slurm token alice)" http://demo-restapi:6820/slurm/v0.0.42/ping

  # For a day, with the time at which it expires
  kubectl slurm token alice --lifespan=24h -o json

  # Without the operator
  kubectl slurm token alice --exec --login=demo-login`

// issued is a token as -o json and -o yaml print it.
type issued struct {
	Token string `json:"token"`
	// Username is the Slurm user that the token is for.
	Username string `json:"username"`
	// ExpiresAt is in UTC.
	ExpiresAt time.Time `json:"expiresAt"`
}

// tokenRequest is what a user asks for.
type tokenRequest struct {
	user, controller string
	lifespan         time.Duration
	// exec is that scontrol issues the token, in a login pod.
	exec bool
	// timeout is how long to wait for the operator.
	timeout time.Duration
}

func (s *session) tokenCommand(ctx context.Context) *cobra.Command {
	var output format
	request := tokenRequest{}
	command := &cobra.Command{
		Use: "token [USER]", Short: "Print a JSON web token of a user", Long: tokenHelp, Example: tokenExamples, Args: cobra.MaximumNArgs(1),
		Annotations:       map[string]string{remoteAnnotation: ""},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(_ *cobra.Command, args []string) error {
			request.user = s.User
			if s.user != "" {
				request.user = s.user
			}
			if len(args) > 0 {
				request.user = args[0]
			}
			if err := request.check(); err != nil {
				return err
			}
			c, err := s.connect()
			if err != nil {
				return err
			}
			issue := s.issueByObject
			if request.exec {
				issue = s.issueByScontrol
			}
			token, err := issue(ctx, c, request)
			if err != nil {
				return err
			}
			done, err := writeData(s.Streams.Out, output, token)
			if err == nil && !done {
				_, err = fmt.Fprintln(s.Streams.Out, token.Token)
			}
			return err
		},
	}
	output.addTo(command)
	command.Flags().DurationVar(&request.lifespan, "lifespan", 15*time.Minute, "How long the token is valid, at least a second.")
	command.Flags().StringVar(&request.controller, "controller", "", "Controller that will accept the token; default: the only one in the namespace.")
	command.Flags().BoolVar(&request.exec, "exec", false, "Run scontrol token as root of a login pod, instead of making a Token.")
	command.Flags().DurationVar(&request.timeout, "timeout", 30*time.Second, "How long to wait for the operator.")
	_ = command.RegisterFlagCompletionFunc("controller", s.complete(ctx, maxArguments, controllerNames()))
	return command
}

// userName are the names that Token allows.
const userName = `^[0-9A-Za-z_$.@+-]{1,128}$`

func (r tokenRequest) check() error {
	switch {
	case !regexp.MustCompile(userName).MatchString(r.user):
		return fmt.Errorf("user %q: a user name has only letters, digits and the characters _ $ . @ + -", r.user)
	case r.lifespan < time.Second:
		return fmt.Errorf("--lifespan=%s: it must be at least 1s", r.lifespan)
	}
	return nil
}

// denied returns the error of rights that are missing.
func denied(what, namespace string, lacks []string, way string) error {
	return fmt.Errorf("%s in namespace %s: you lack the right to %s. Ask for a Role that allows it%s", what, namespace, strings.Join(lacks, ", to "), way)
}

// issueByScontrol has slurmctld issue the token. It comes on standard output, and is in the arguments of no program.
func (s *session) issueByScontrol(ctx context.Context, c *connection, r tokenRequest) (issued, error) {
	if r.controller != "" {
		return issued{}, errors.New("--controller is for Token objects: with --exec, choose the login pod by --login")
	}
	lacks, err := lacking(ctx, c, right{"list", "", "pods"}, right{"get", "", "pods/exec"}, right{"create", "", "pods/exec"})
	if err != nil {
		return issued{}, err
	}
	if len(lacks) > 0 {
		return issued{}, denied("running scontrol token", c.namespace, lacks, ", or leave out --exec")
	}
	pod, err := s.findLogin(ctx, c)
	if err != nil {
		return issued{}, err
	}
	expires := s.Now().UTC().Add(r.lifespan).Truncate(time.Second)
	out, err := capture(ctx, c, pod, slinkyv1beta1.NameLogin, "scontrol", "token", "username="+r.user, fmt.Sprintf("lifespan=%d", int64(r.lifespan/time.Second)))
	if err != nil {
		return issued{}, err
	}
	for line := range bytes.Lines(out) {
		if token, ok := strings.CutPrefix(strings.TrimSpace(string(line)), slinkyv1beta1.TokenKeyName+"="); ok && token != "" {
			return issued{Token: token, Username: r.user, ExpiresAt: expires}, nil
		}
	}
	return issued{}, fmt.Errorf("running scontrol token in pod %s/%s: it printed no line %s=…", pod.Namespace, pod.Name, slinkyv1beta1.TokenKeyName)
}
