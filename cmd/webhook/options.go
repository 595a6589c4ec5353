// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/coxswain-hpc/coxswain/internal/logging"
	"github.com/coxswain-hpc/coxswain/internal/webhook"
)

// options are the command line. The flags are those of the predecessor, and those that say where certificates come from.
type options struct {
	server                     webhook.Flags
	healthAddr, metricsAddr    string
	metricsSecure, enableHTTP2 bool
	namespaces                 []string
	logLevel, logFormat        string
}

// parse reads the command line; args are without the program's name. flag.ErrHelp means that help was asked for and
// printed.
func parse(args []string, output io.Writer) (*options, error) {
	o := &options{}
	fs := flag.NewFlagSet("webhook", flag.ContinueOnError)
	// Mistakes are told by the error alone, without the list of all flags around it.
	fs.SetOutput(io.Discard)
	o.bind(fs)
	ignored := bindIgnored(fs)
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fs.SetOutput(output)
			usage(fs, output)
		}
		return nil, err
	}
	if fs.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q: the webhook takes flags only, see --help", fs.Arg(0))
	}
	fs.Visit(func(f *flag.Flag) {
		if why, ok := ignored[f.Name]; ok {
			fmt.Fprintf(output, "--%s has no effect: %s\n", f.Name, why)
		}
	})
	_, err := logging.Handler(io.Discard, o.logLevel, o.logFormat)
	return o, errors.Join(err, o.server.Validate(""))
}

func (o *options) bind(fs *flag.FlagSet) {
	o.server.Bind(fs, "")
	fs.StringVar(&o.healthAddr, "health-addr", ":8081", "`address` of /healthz and /readyz; ready means that the webhooks are served")
	fs.StringVar(&o.metricsAddr, "metrics-addr", "0", "`address` of /metrics; 0 switches it off")
	fs.BoolVar(&o.metricsSecure, "metrics-secure", true,
		"serve /metrics over HTTPS, to callers whose token may get the non-resource URL /metrics")
	fs.BoolVar(&o.enableHTTP2, "enable-http2", false, "allow HTTP/2 for /metrics and the webhooks")
	fs.Func("namespaces", "comma-separated `namespaces` whose objects are looked at; empty or * means all", func(s string) error {
		o.namespaces = nil
		for entry := range strings.SplitSeq(s, ",") {
			if entry = strings.TrimSpace(entry); entry != "" {
				o.namespaces = append(o.namespaces, entry)
			}
		}
		return nil
	})
	logging.Bind(fs, &o.logLevel, &o.logFormat)
}

// bindIgnored declares the predecessor's flags that have no meaning here, each with the reason.
func bindIgnored(fs *flag.FlagSet) map[string]string {
	ignored := map[string]string{
		"leader-elect":           "every replica serves",
		"leader-elect-namespace": "every replica serves",
		"zap-devel":              "use --log-format=plain and --log-level=debug",
		"zap-stacktrace-level":   "logs carry no stack traces",
		"zap-time-encoding":      "times are RFC 3339",
	}
	for name, why := range ignored {
		set := func(string) error { return nil }
		if name == "leader-elect" || name == "zap-devel" {
			fs.BoolFunc(name, "accepted without effect: "+why, set)
		} else {
			fs.Func(name, "accepted without effect: "+why, set)
		}
	}
	return ignored
}

func usage(fs *flag.FlagSet, w io.Writer) {
	fmt.Fprint(w, `The Coxswain webhook tells users of mistakes in their objects while they make them.

Outside a pod it takes the cluster from the KUBECONFIG environment variable.

Usage: webhook [flags]

`)
	fs.PrintDefaults()
}
