// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/coxswain-hpc/coxswain/internal/operator/command"
	"github.com/coxswain-hpc/coxswain/internal/operator/logging"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
	"github.com/coxswain-hpc/coxswain/internal/slurm/token"
)

// options are the command line, with the flags of the predecessor, and its environment.
type options struct {
	metricsAddr, monitoringAddr string
	slurmrestd                  string
	namespace, cluster          string
	intervalText, rotationText  string
	interval, rotation          time.Duration
	inflight                    int
	jobSource, lookbackText     string
	lookback                    time.Duration // zero: jobs are read from slurmctld

	standalone                                 bool
	scontrol, staticToken, tokenFile, tokenKey string
	tokenUser                                  string

	maxSeries     int
	withoutLabels map[string][]string

	logLevel, logFormat string
}

const about = `The Coxswain exporter shows Prometheus what a Slurm cluster is doing, at /metrics. /health says whether it can.

It asks slurmrestd. The token for that comes from the first of these that is given:

  --token-file    a file with a token, which somebody else keeps fresh
  --token-key     a file with the key of slurmctld, with which the exporter signs tokens for --token-user
  --standalone    "scontrol token", which needs a Slurm installation
  --static-token  the token itself; better by SLURM_EXPORTER_TOKEN than on the command line, where everybody sees it

Most flags can also be set by an environment variable: SLURM_EXPORTER_ and the name of the flag. A flag takes precedence.
`

func program() command.Program {
	return command.Program{
		Name: "exporter", About: about,
		Ignored: []map[string]string{logging.Ignored(), {
			"kubeconfig-path": "the exporter asks nothing of Kubernetes",
		}},
	}
}

// parse reads the command line; args are without the program's name. flag.ErrHelp means that help was asked for and printed.
func parse(args []string, environment func(string) (string, bool), output io.Writer) (*options, error) {
	o := &options{withoutLabels: map[string][]string{}}
	if err := program().Parse(args, output, func(fs *flag.FlagSet) { o.bind(fs, environment) }); err != nil {
		return nil, err
	}
	return o, o.validate()
}

func (o *options) bind(fs *flag.FlagSet, environment func(string) (string, bool)) {
	text := func(to *string, name, otherwise, usage string) {
		variable := "SLURM_EXPORTER_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
		if value, ok := environment(variable); ok && value != "" {
			otherwise = value
		}
		fs.StringVar(to, name, otherwise, usage)
	}
	text(&o.metricsAddr, "metrics-bind-address", ":8080", "`address` of /metrics of the cluster and of /health")
	text(&o.monitoringAddr, "monitoring-bind-address", ":8081", "`address` of /metrics of the exporter itself")
	text(&o.slurmrestd, "slurm-api-server", "http://localhost:6820", "`URL` of slurmrestd")
	text(&o.namespace, "cluster-namespace", "soperator", "`namespace` of the cluster")
	text(&o.cluster, "cluster-name", "", "`name` of the cluster; required")
	text(&o.intervalText, "collection-interval", "30s", "`time` between two collections")
	text(&o.jobSource, "job-source", "controller", "where jobs are read from: controller or accounting")
	text(&o.lookbackText, "accounting-jobs-lookback", "1h", "read jobs from slurmdbd that ended at most this long `ago`")
	text(&o.scontrol, "scontrol-path", "scontrol", "`program` that makes tokens with --standalone")
	text(&o.rotationText, "key-rotation-interval", "30m", "`lifetime` of tokens that are made with --standalone")
	text(&o.tokenFile, "token-file", "", "`file` with a token")
	text(&o.tokenKey, "token-key", "", "`file` with the key of slurmctld that signs tokens")
	text(&o.tokenUser, "token-user", "nobody", "Slurm `user` of tokens that the exporter makes. nobody sees everything, unless PrivateData hides it")
	// The variable of the token has a name of its own.
	o.staticToken, _ = environment("SLURM_EXPORTER_TOKEN")
	fs.Func("static-token", "the `token`", func(s string) error {
		o.staticToken = s
		return nil
	})
	fs.BoolVar(&o.standalone, "standalone", false, "make tokens with scontrol")
	fs.IntVar(&o.inflight, "max-collector-inflight", 1, "maximum number of collections of one kind at a time")
	fs.IntVar(&o.maxSeries, "max-series-per-metric", 200000, "maximum number of series of a metric; further ones are dropped and counted. 0 means no limit")
	fs.Func("without-labels", "labels to leave out, as `METRIC=LABEL[,LABEL...]`; may be given several times", o.leaveOut)
	logging.Bind(fs, &o.logLevel, &o.logFormat)
	if value, ok := environment("SLURM_EXPORTER_LOG_FORMAT"); ok && value != "" {
		o.logFormat = value
	}
	if value, ok := environment("SLURM_EXPORTER_LOG_LEVEL"); ok && value != "" {
		o.logLevel = value
	}
}

func (o *options) leaveOut(s string) error {
	metric, labels, ok := strings.Cut(s, "=")
	if !ok || metric == "" || len(command.List(labels)) == 0 {
		return fmt.Errorf("%q is not METRIC=LABEL[,LABEL...]", s)
	}
	o.withoutLabels[metric] = append(o.withoutLabels[metric], command.List(labels)...)
	return nil
}

func (o *options) validate() error {
	var errs []error
	if _, err := logging.Handler(io.Discard, o.logLevel, o.logFormat); err != nil {
		errs = append(errs, err)
	}
	if _, err := rest.ParseEndpoint(o.slurmrestd); err != nil {
		errs = append(errs, fmt.Errorf("--slurm-api-server: %w", err))
	}
	if o.cluster == "" {
		errs = append(errs, errors.New("--cluster-name must be given"))
	}
	var err error
	if o.interval, err = duration(o.intervalText); err != nil {
		errs = append(errs, fmt.Errorf("--collection-interval: %w", err))
	}
	if o.rotation, err = duration(o.rotationText); err != nil {
		errs = append(errs, fmt.Errorf("--key-rotation-interval: %w", err))
	}
	if o.inflight < 1 {
		errs = append(errs, fmt.Errorf("--max-collector-inflight is %d: it must be at least 1", o.inflight))
	}
	if o.maxSeries < 0 {
		errs = append(errs, fmt.Errorf("--max-series-per-metric is %d: it must not be negative", o.maxSeries))
	}
	if err := o.jobs(); err != nil {
		errs = append(errs, err)
	}
	if cmp.Or(o.tokenFile, o.tokenKey, o.staticToken) == "" && !o.standalone {
		errs = append(errs, errors.New("there is no token: give --token-file, --token-key, --standalone or SLURM_EXPORTER_TOKEN"))
	}
	return errors.Join(errs...)
}

// jobs reads where jobs come from.
func (o *options) jobs() (err error) {
	switch o.jobSource {
	case "controller":
		return nil
	case "accounting":
		if o.lookback, err = duration(o.lookbackText); err != nil {
			return fmt.Errorf("--accounting-jobs-lookback: %w", err)
		}
		return nil
	}
	return fmt.Errorf("--job-source is %q: it must be controller or accounting", o.jobSource)
}

// duration reads a duration of Go ("1m30s") or of Prometheus ("1d", "2w"); it must be more than zero.
func duration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil {
		var p model.Duration
		if p, err = model.ParseDuration(s); err != nil {
			return 0, fmt.Errorf("%q is not a duration such as 30s, 1m30s or 1d", s)
		}
		d = time.Duration(p)
	}
	if d < time.Second {
		return 0, fmt.Errorf("%q must be at least a second", s)
	}
	return d, nil
}

// issuer returns where tokens come from.
func (o *options) issuer() (token.Issuer, error) {
	switch {
	case o.tokenFile != "":
		return token.NewFile(o.tokenFile), nil
	case o.tokenKey != "":
		key, err := os.ReadFile(o.tokenKey) //nolint:gosec // whoever starts the program names the file
		if err != nil {
			return nil, fmt.Errorf("reading the key of tokens: %w", err)
		}
		return token.NewSigned(key, o.tokenUser, 0)
	case o.standalone:
		return &scontrol{program: o.scontrol, user: o.tokenUser, lifetime: o.rotation}, nil
	}
	issuer, err := token.NewStatic(o.staticToken)
	if err != nil {
		return nil, fmt.Errorf("SLURM_EXPORTER_TOKEN: %w", err)
	}
	return issuer, nil
}
