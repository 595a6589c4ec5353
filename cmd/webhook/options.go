// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"io"

	"github.com/coxswain-hpc/coxswain/internal/operator/command"
	"github.com/coxswain-hpc/coxswain/internal/operator/logging"
	"github.com/coxswain-hpc/coxswain/internal/webhook"
)

// options are the command line. The flags are those of the predecessor, and those for the source of certificates.
type options struct {
	server              webhook.Flags
	healthAddr          string
	metrics             command.Metrics
	enableHTTP2         bool
	namespaces          []string
	logLevel, logFormat string
}

// program returns the webhook on the command line.
func program() command.Program {
	return command.Program{
		Name: "webhook",
		About: `The Coxswain webhook checks objects while users create or change them, and reports mistakes.

Outside a pod it takes the cluster from the KUBECONFIG environment variable.
`,
		Ignored: []map[string]string{logging.Ignored(), {
			"leader-elect":           "every replica serves",
			"leader-elect-namespace": "every replica serves",
		}},
	}
}

// parse reads the command line; args are without the program's name. flag.ErrHelp means that help was asked for and
// printed.
func parse(args []string, output io.Writer) (*options, error) {
	o := &options{}
	if err := program().Parse(args, output, o.bind); err != nil {
		return nil, err
	}
	_, err := logging.Handler(io.Discard, o.logLevel, o.logFormat)
	return o, errors.Join(err, o.server.Validate(""))
}

func (o *options) bind(fs *flag.FlagSet) {
	o.server.Bind(fs, "")
	fs.StringVar(&o.healthAddr, "health-addr", ":8081", "`address` of /healthz and /readyz; ready means that the webhooks are served")
	o.metrics.Bind(fs, "0", "metrics-addr")
	fs.BoolVar(&o.enableHTTP2, "enable-http2", false, "allow HTTP/2 for /metrics and the webhooks")
	command.BindList(fs, &o.namespaces, "namespaces", "comma-separated `namespaces` whose objects are checked; empty or * means all")
	logging.Bind(fs, &o.logLevel, &o.logFormat)
}
