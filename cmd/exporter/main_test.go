// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/executable"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func variables(of map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, ok := of[name]
		return value, ok
	}
}

// address returns an address of this machine without a listener.
func address(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// get returns the body of an answer with status 200.
func get(url string) (string, error) {
	answer, err := http.Get(url)
	if err != nil {
		return "", err
	}
	body, err := io.ReadAll(answer.Body)
	if err = errors.Join(err, answer.Body.Close()); err == nil && answer.StatusCode != http.StatusOK {
		err = errors.New(answer.Status + ": " + string(body))
	}
	http.DefaultClient.CloseIdleConnections()
	return string(body), err
}

// The program serves slurmrestd's answers, with a token of each kind, and ends when it is asked to.
func TestTheProgramServesWhatSlurmrestdSays(t *testing.T) {
	dir := t.TempDir()
	const key = "the-key-of-the-cluster"
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	scontrol := filepath.Join(dir, "scontrol")
	executable.Write(t, scontrol, "#!/bin/sh\necho SLURM_JWT=$2.$3.c\n")
	tokenless := fake.Options{} // each token is good, which is tested where tokens are made
	tests := map[string]struct {
		slurm     fake.Options
		args      []string
		variables map[string]string
	}{
		"a key":            {fake.Options{Key: []byte(key)}, []string{"--token-key=" + write("key", key)}, nil},
		"a file":           {tokenless, []string{"--token-file=" + write("token", "a.b.c\n")}, nil},
		"a variable":       {tokenless, nil, map[string]string{"SLURM_EXPORTER_TOKEN": "a.b.c"}},
		"a program":        {tokenless, []string{"--standalone", "--scontrol-path=" + scontrol}, nil},
		"all by variables": {fake.Options{Key: []byte(key)}, nil, map[string]string{"SLURM_EXPORTER_TOKEN_KEY": write("key2", key)}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := fake.New(tt.slurm)
			s.Register(fake.Node{Name: "worker-0", CPUs: 4})
			s.Submit(fake.Job{Name: "train", NodeList: []string{"worker-0"}})
			slurmrestd := httptest.NewServer(s)
			defer slurmrestd.Close()
			metrics, monitoring := address(t), address(t)
			args := append([]string{"--metrics-bind-address=" + metrics, "--slurm-api-server=" + slurmrestd.URL, "--cluster-name=c"}, tt.args...)
			env := map[string]string{"SLURM_EXPORTER_MONITORING_BIND_ADDRESS": monitoring, "SLURM_EXPORTER_COLLECTION_INTERVAL": "1s"}
			maps.Copy(env, tt.variables)
			ctx, stop := context.WithCancel(t.Context())
			var log bytes.Buffer
			ended := make(chan error)
			go func() { ended <- run(ctx, args, variables(env), &log) }()
			apiserver.Eventually(t, func() error {
				if _, err := get("http://" + metrics + "/health"); err != nil {
					return err
				}
				body, err := get("http://" + metrics + "/metrics")
				if err == nil && (!strings.Contains(body, `slurm_node_cpus_allocated{node_name="worker-0"} 4`) || !strings.Contains(body, `job_name="train"`)) {
					err = errors.New(body)
				}
				return err
			})
			if body, err := get("http://" + monitoring + "/metrics"); err != nil || !strings.Contains(body, "slurm_exporter_collection_failures_total 0\n") {
				t.Errorf("%v, %s", err, body)
			}
			stop()
			if err := <-ended; err != nil {
				t.Errorf("it ends with %v; %s", err, log.String())
			}
		})
	}
}

func TestAnAddressThatIsTakenEndsTheProgram(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	err = run(t.Context(), []string{
		"--cluster-name=c", "--static-token=a.b.c", "--slurm-api-server=http://127.0.0.1:1", "--metrics-bind-address=" + l.Addr().String(),
		"--monitoring-bind-address=" + address(t),
	}, variables(nil), io.Discard)
	if err == nil || !strings.Contains(err.Error(), l.Addr().String()) {
		t.Errorf("it ends with %v", err)
	}
}

func TestCommandLine(t *testing.T) {
	tests := map[string]struct {
		args      []string
		variables map[string]string
		want      string // of the error
	}{
		"flags come before variables": {
			[]string{"--cluster-name=c", "--static-token=t", "--collection-interval=1d"},
			map[string]string{"SLURM_EXPORTER_COLLECTION_INTERVAL": "nonsense"}, "",
		},
		"no cluster":  {[]string{"--static-token=t"}, nil, "--cluster-name must be given"},
		"no token":    {[]string{"--cluster-name=c"}, nil, "there is no token: give --token-file"},
		"an interval": {[]string{"--cluster-name=c", "--static-token=t", "--collection-interval=5"}, nil, `--collection-interval: "5" is not a duration such as 30s`},
		"an interval of a variable": {
			[]string{"--cluster-name=c", "--static-token=t"}, map[string]string{"SLURM_EXPORTER_COLLECTION_INTERVAL": "0s"},
			`--collection-interval: "0s" must be at least a second`,
		},
		"jobs of slurmdbd": {
			[]string{"--cluster-name=c", "--static-token=t", "--collection-interval=1d", "--job-source=accounting", "--accounting-jobs-lookback=2h"}, nil, "",
		},
		"jobs of somebody else": {[]string{"--cluster-name=c", "--static-token=t", "--job-source=sacct"}, nil, `--job-source is "sacct": it must be controller or accounting`},
		"a lookback": {
			[]string{"--cluster-name=c", "--static-token=t", "--job-source=accounting", "--accounting-jobs-lookback=0"}, nil, "--accounting-jobs-lookback: ",
		},
		"a label":     {[]string{"--without-labels=slurm_job_info"}, nil, `"slurm_job_info" is not METRIC=LABEL`},
		"an endpoint": {[]string{"--cluster-name=c", "--static-token=t", "--slurm-api-server=nowhere"}, nil, "--slurm-api-server: "},
		"inflight":    {[]string{"--cluster-name=c", "--static-token=t", "--max-collector-inflight=0"}, nil, "--max-collector-inflight is 0"},
		"series":      {[]string{"--cluster-name=c", "--static-token=t", "--max-series-per-metric=-1"}, nil, "--max-series-per-metric is -1"},
		"a level":     {[]string{"--cluster-name=c", "--static-token=t"}, map[string]string{"SLURM_EXPORTER_LOG_LEVEL": "loud"}, "loud"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			o, err := parse(tt.args, variables(tt.variables), io.Discard)
			if tt.want == "" && (err != nil || o.interval != 24*time.Hour) || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("%+v, %v, want %q", o, err, tt.want)
			}
		})
	}
	var help bytes.Buffer
	if _, err := parse([]string{"--help"}, variables(nil), &help); !errors.Is(err, flag.ErrHelp) || !strings.Contains(help.String(), "-token-file") {
		t.Errorf("%v, %s", err, help.String())
	}
}

func TestAProgramThatMakesNoTokenSaysWhy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "scontrol")
	for text, want := range map[string]string{
		"#!/bin/sh\necho no such user >&2\nexit 1\n": "exit status 1: no such user",
		"#!/bin/sh\necho hello\n":                    "it did not print SLURM_JWT=",
		"#!/bin/sh\necho SLURM_JWT=\n":               "it is empty, or no token",
	} {
		executable.Write(t, path, text)
		s := &scontrol{program: path, user: "nobody", lifetime: time.Minute}
		if _, _, err := s.Token(time.Now()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
