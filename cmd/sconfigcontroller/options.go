// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/operator/command"
	"github.com/coxswain-hpc/coxswain/internal/operator/logging"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

// options are the command line, with the flags of the predecessor.
type options struct {
	healthAddr         string
	metrics            command.Metrics
	enableHTTP2        bool
	leaderElect        bool
	concurrency        int
	cacheSyncTimeout   time.Duration
	poll, wait         time.Duration
	jail               string
	namespace, cluster string
	slurmrestd         string
	// configOwner is who the config directory is given to, instead of anything else.
	configOwner         string
	logLevel, logFormat string
}

func program() command.Program {
	return command.Program{
		Name: "sconfigcontroller",
		About: `The Coxswain sconfigcontroller writes the files of JailedConfigs into the jail, and has Slurm reread its configuration.

Outside a pod it takes the cluster from the KUBECONFIG environment variable.
`,
		Ignored: []map[string]string{logging.Ignored()},
	}
}

// parse reads the command line; args are without the program's name. flag.ErrHelp means that help was asked for and printed.
func parse(args []string, output io.Writer) (*options, error) {
	o := &options{}
	if err := program().Parse(args, output, o.bind); err != nil {
		return nil, err
	}
	return o, o.validate()
}

func (o *options) bind(fs *flag.FlagSet) {
	fs.StringVar(&o.healthAddr, "health-probe-bind-address", ":8081", "`address` of /healthz and /readyz")
	o.metrics.Bind(fs, ":8080", "metrics-bind-address")
	fs.BoolVar(&o.enableHTTP2, "enable-http2", false, "allow HTTP/2 for /metrics")
	fs.BoolVar(&o.leaderElect, "leader-elect", false, "act only while holding the lease <cluster>-sconfigcontroller")
	fs.IntVar(&o.concurrency, "max-concurrent-reconciles", 1, "groups of JailedConfigs to write at once")
	fs.DurationVar(&o.cacheSyncTimeout, "cache-sync-timeout", time.Minute, "time within which caches must fill at start")
	fs.DurationVar(&o.poll, "reconfigure-poll-interval", 20*time.Second, "longest interval between two checks whether slurmds have reread their configuration")
	fs.DurationVar(&o.wait, "reconfigure-wait-timeout", time.Minute, "how long to wait until slurmds have reread their configuration")
	fs.StringVar(&o.jail, "jail-path", "/mnt/jail", "`directory` at which the jail is mounted")
	fs.StringVar(&o.namespace, "cluster-namespace", "default", "`namespace` of the SlurmCluster and its JailedConfigs")
	fs.StringVar(&o.cluster, "cluster-name", "soperator", "`name` of the SlurmCluster")
	fs.StringVar(&o.slurmrestd, "slurmapiserver", "http://localhost:6820", "`URL` of slurmrestd")
	fs.StringVar(&o.configOwner, "give-config-directory", "", "change the owner of /etc/slurm in the jail to `UID:GID`, and exit")
	logging.Bind(fs, &o.logLevel, &o.logFormat)
}

func (o *options) validate() error {
	var errs []error
	if _, err := logging.Handler(io.Discard, o.logLevel, o.logFormat); err != nil {
		errs = append(errs, err)
	}
	if _, err := rest.ParseEndpoint(o.slurmrestd); err != nil {
		errs = append(errs, fmt.Errorf("--slurmapiserver: %w", err))
	}
	if o.concurrency < 1 {
		errs = append(errs, fmt.Errorf("--max-concurrent-reconciles is %d: it must be at least 1", o.concurrency))
	}
	if o.poll <= 0 || o.wait <= o.poll {
		errs = append(errs, fmt.Errorf("--reconfigure-wait-timeout is %s: it must be more than --reconfigure-poll-interval, which is %s", o.wait, o.poll))
	}
	if o.namespace == "" || o.cluster == "" || o.jail == "" {
		errs = append(errs, errors.New("--cluster-namespace, --cluster-name and --jail-path must not be empty"))
	}
	if o.configOwner != "" {
		if _, err := parseOwner(o.configOwner); err != nil {
			errs = append(errs, fmt.Errorf("--give-config-directory: %w", err))
		}
	}
	return errors.Join(errs...)
}
