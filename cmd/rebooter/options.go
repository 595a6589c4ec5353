// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"io"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/operator/command"
	"github.com/coxswain-hpc/coxswain/internal/operator/logging"
)

// The environment variables of the program.
const (
	nodeNameEnv       = "REBOOTER_NODE_NAME"
	evictionMethodEnv = "REBOOTER_EVICTION_METHOD"
)

// options are the command line and the environment, with the names of the predecessor.
type options struct {
	node                string
	healthAddr          string
	metrics             command.Metrics
	enableHTTP2         bool
	cacheSyncTimeout    time.Duration
	logLevel, logFormat string
}

func program() command.Program {
	return command.Program{
		Name: "rebooter",
		About: `The Coxswain rebooter drains and reboots the Kubernetes node on which it runs, as conditions SlurmNodeDrain and
SlurmNodeReboot of the Node ask for. ` + nodeNameEnv + ` is the name of the node.

Outside a pod it takes the cluster from the KUBECONFIG environment variable.
`,
		Ignored: []map[string]string{logging.Ignored(), {
			"reconcile-timeout": "the rebooter is woken by changes of the node and its pods, not by time",
			"leader-elect":      "there is one rebooter on each node",
		}},
	}
}

// parse reads the command line without the program's name, and the environment. flag.ErrHelp means that help was asked for and printed.
func parse(args []string, output io.Writer, getenv func(string) string) (*options, error) {
	o := &options{node: getenv(nodeNameEnv)}
	if err := program().Parse(args, output, o.bind); err != nil {
		return nil, err
	}
	return o, o.validate(getenv(evictionMethodEnv))
}

func (o *options) bind(fs *flag.FlagSet) {
	fs.StringVar(&o.healthAddr, "health-probe-bind-address", ":8081", "`address` of /healthz and /readyz; 0 switches them off")
	o.metrics.Bind(fs, ":8080", "metrics-bind-address")
	fs.BoolVar(&o.enableHTTP2, "enable-http2", false, "allow HTTP/2 for /metrics")
	fs.DurationVar(&o.cacheSyncTimeout, "cache-sync-timeout", 2*time.Minute, "time within which caches must fill at start")
	logging.Bind(fs, &o.logLevel, &o.logFormat)
}

func (o *options) validate(evictionMethod string) error {
	var errs []error
	if _, err := logging.Handler(io.Discard, o.logLevel, o.logFormat); err != nil {
		errs = append(errs, err)
	}
	if o.node == "" {
		errs = append(errs, errors.New(nodeNameEnv+" is empty: it must be the name of the Kubernetes node"))
	}
	// Any other value is evict for the predecessor.
	if evictionMethod == "drain" {
		errs = append(errs, errors.New(evictionMethodEnv+" is drain, which is not supported: leave it out, or set it to evict"))
	}
	return errors.Join(errs...)
}
