// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"strings"
	"testing"
	"time"
)

func TestCommandLinesOfThePredecessorAreTaken(t *testing.T) {
	o, err := parse(strings.Fields("--cluster-namespace=ns --cluster-name=c --jail-path=/mnt/jail --slurmapiserver=http://c-rest-svc.ns:6820 --leader-elect "+
		"--reconfigure-poll-interval=5s --reconfigure-wait-timeout=2m --log-level=debug --metrics-secure=false"), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	if !o.leaderElect || o.namespace != "ns" || o.cluster != "c" || o.poll != 5*time.Second || o.wait != 2*time.Minute || o.slurmrestd != "http://c-rest-svc.ns:6820" {
		t.Errorf("%+v", o)
	}
	o, err = parse(nil, t.Output())
	if err != nil || o.jail != "/mnt/jail" || o.namespace != "default" || o.cluster != "soperator" || o.leaderElect || o.poll != 20*time.Second || o.wait != time.Minute {
		t.Errorf("defaults: %+v, %v", o, err)
	}
}

func TestMistakesInTheCommandLineAreNamed(t *testing.T) {
	for args, want := range map[string]string{
		"--slurmapiserver=x":                "--slurmapiserver: ",
		"--reconfigure-wait-timeout=20s":    "must be more than --reconfigure-poll-interval, which is 20s",
		"--max-concurrent-reconciles=0":     "must be at least 1",
		"--cluster-name=":                   "must not be empty",
		"--log-level=loud":                  "loud",
		"--give-config-directory=slurm":     "does not have the form UID:GID",
		"write":                             `unexpected argument "write"`,
		"--reconfigure-poll-interval=never": "never",
	} {
		if _, err := parse([]string{args}, t.Output()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
	if _, err := parse([]string{"--help"}, t.Output()); !errors.Is(err, flag.ErrHelp) {
		t.Error(err)
	}
}
