// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-hpc/coxswain/internal/health"
	"github.com/coxswain-hpc/coxswain/internal/health/podstorage"
	"github.com/coxswain-hpc/coxswain/internal/operator"
)

func noEnv(string) string { return "" }

func parsed(t *testing.T, args ...string) *options {
	t.Helper()
	var output bytes.Buffer
	o, err := parse(args, noEnv, &output)
	if err != nil {
		t.Fatalf("%q: %v\n%s", args, err, output.String())
	}
	return o
}

func TestDefaults(t *testing.T) {
	o := parsed(t)
	if o.healthAddr != ":8081" || o.metrics.Address != ":8080" || !o.metrics.Secure || !o.leaderElect || o.enableHTTP2 || o.cacheSyncTimeout != 2*time.Minute {
		t.Errorf("%+v", o)
	}
	if o.namespaces != nil || o.imageTag == "" || o.imageRegistry == "" || o.slurmrestdURL != "" {
		t.Errorf("%+v", o)
	}
	enabled, err := o.enabled()
	if err != nil || slices.Contains(slices.Collect(maps.Values(enabled)), false) || len(enabled) != len(operator.Kinds()) {
		t.Errorf("enabled %v, %v", enabled, err)
	}
	for _, kind := range operator.Kinds() {
		if o.concurrency(kind) != 4 {
			t.Errorf("%d workers for %s", o.concurrency(kind), kind)
		}
	}
}

// TestTheChartsOfBothPredecessorsWork has the arguments that their charts pass:
// docs/contributors/predecessors/slinky-installation.md#flags-of-the-manager and
// docs/contributors/predecessors/soperator-installation.md#flags-of-the-operator.
func TestTheChartsOfBothPredecessorsWork(t *testing.T) {
	slinky := parsed(t,
		"--accounting-workers=4", "--controller-workers", "4", "--loginset-workers=3", "--nodeset-workers=7", "--restapi-workers=4",
		"--slurmclient-workers=2", "--token-workers=4", "--zap-log-level=info", "--zap-encoder=console", "--zap-devel=false",
		"--health-addr=:1", "--metrics-addr=:2", "--metrics-secure=false", "--leader-elect=false", "--leader-elect-namespace=ops", "--enable-http2",
		"--namespaces=a,b", "--propagated-node-conditions=Ready,Disk", "--profile", "--profile-addr=localhost:1",
	)
	soperator := parsed(t,
		"--health-probe-bind-address=:1", "--metrics-bind-address=:2", "--metrics-secure=false", "--leader-elect=false", "--operator-namespace=ops", "--enable-http2=true",
		"--enable-topology-controller", "--max-concurrent-reconciles=4", "--cache-sync-timeout=2m", "--log-format=plain", "--log-level=info", "--controllers=*",
		"--namespaces", "a,b", "--profile=true", "--profile-addr=localhost:1",
	)
	if diff := cmp.Diff([]string{"Ready", "Disk"}, slinky.propagatedNodeConditions); diff != "" {
		t.Error(diff)
	}
	for _, o := range []*options{slinky, soperator} {
		if o.healthAddr != ":1" || o.metrics.Address != ":2" || o.metrics.Secure || o.leaderElect || o.leaderElectNamespace != "ops" || !o.enableHTTP2 || !o.profile ||
			o.profileAddr != "localhost:1" {
			t.Errorf("%+v", o)
		}
		if diff := cmp.Diff([]string{"a", "b"}, o.namespaces); diff != "" {
			t.Error(diff)
		}
		if _, err := o.logHandler(&bytes.Buffer{}); err != nil {
			t.Error(err)
		}
	}
	if slinky.concurrency("nodeset") != 7 || slinky.concurrency("loginset") != 3 || slinky.concurrency("slurmcluster") != 4 {
		t.Error("the numbers of workers are wrong")
	}
}

// TestEphemeralStorageIsMeasuredWhereItIsAskedFor has the flags of
// docs/contributors/predecessors/soperator-installation.md#flags-of-soperatorchecks.
func TestEphemeralStorageIsMeasuredWhereItIsAskedFor(t *testing.T) {
	if o := parsed(t); o.storageOptions() != nil || o.maxDrainedByChecks != "10%" {
		t.Errorf("without a flag: %+v, %s", o.storageOptions(), o.maxDrainedByChecks)
	}
	got := parsed(t, "--ephemeral-storage-check", "--ephemeral-storage-threshold=90.5", "--ephemeral-storage-resume-threshold=70", "--kubelet-port=1",
		"--kubelet-request-timeout=3s", "--kubelet-insecure-skip-tls-verify=true").storageOptions()
	want := &podstorage.Options{
		Thresholds: health.StorageThresholds{Drain: 90.5, Resume: 70},
		Kubelet:    podstorage.KubeletOptions{Port: 1, RequestTimeout: 3 * time.Second, InsecureSkipTLSVerify: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	want = &podstorage.Options{Thresholds: health.StorageThresholds{Drain: 85, Resume: 80}, Kubelet: podstorage.KubeletOptions{Port: 10250, RequestTimeout: 10 * time.Second}}
	if diff := cmp.Diff(want, parsed(t, "--ephemeral-storage-check").storageOptions()); diff != "" {
		t.Error(diff)
	}
}

func TestTheMetricsOfClustersAreServedWhereTheyAreAskedFor(t *testing.T) {
	if parsed(t).clusterMetricsInterval != 0 || parsed(t, "--cluster-metrics-interval=1m").clusterMetricsInterval != time.Minute {
		t.Error("the default or the flag is not right")
	}
}

func TestTheStatusPageIsServedWhereItIsAskedFor(t *testing.T) {
	if parsed(t).statusPage || !parsed(t, "--status-page").statusPage {
		t.Error("it is served without the flag, or not with it")
	}
}

func TestFlagsWithoutEffectSaySo(t *testing.T) {
	var output bytes.Buffer
	if _, err := parse([]string{"--slurmclient-workers", "2", "--feature-gates=A=true", "--zap-devel"}, noEnv, &output); err != nil {
		t.Fatal(err)
	}
	want := "--feature-gates has no effect: there are none\n" +
		"--slurmclient-workers has no effect: the operator asks each Slurm cluster as often as its limits allow\n" +
		"--zap-devel has no effect: use --log-format=plain and --log-level=debug\n"
	if diff := cmp.Diff(want, output.String()); diff != "" {
		t.Error(diff)
	}
}

func TestEnvironmentGivesDefaultsThatFlagsReplace(t *testing.T) {
	env := func(name string) string {
		return map[string]string{"SLURM_OPERATOR_WATCH_NAMESPACES": "x, y,", "SLURM_OPERATOR_CONTROLLERS": "nodeset"}[name]
	}
	o, err := parse(nil, env, &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"x", "y"}, o.namespaces); diff != "" {
		t.Error(diff)
	}
	if o, err = parse([]string{"--namespaces=", "--controllers=*"}, env, &bytes.Buffer{}); err != nil || o.namespaces != nil || !slices.Equal(o.controllers, []string{"*"}) {
		t.Errorf("%+v, %v", o, err)
	}
}

func TestControllersAreSwitched(t *testing.T) {
	tests := []struct{ name, flag, want string }{
		{"all by default", "", "accounting controller loginset nodeconfigurator nodeset restapi slurmcluster token"},
		{"all by a star", "*", "accounting controller loginset nodeconfigurator nodeset restapi slurmcluster token"},
		{"only those that are named", "nodeset,controller", "controller nodeset"},
		{"all but one", "*,-loginset", "accounting controller nodeconfigurator nodeset restapi slurmcluster token"},
		{"a SlurmCluster with what it is composed of", "slurmcluster", "accounting controller loginset nodeset restapi slurmcluster token"},
		{"the list of the predecessor", "cluster,nodeconfigurator,nodeset,rollingupdate,topology", "accounting controller loginset nodeconfigurator nodeset restapi slurmcluster token"},
		{"the list of the predecessor's checks enables no controller", "slurmapiclients,slurmnodes,k8snodes,activecheck,activecheckjob,serviceaccount,podephemeralstoragecheck", ""},
		{"all but a part of the predecessor", "*,-topology", "accounting controller loginset nodeconfigurator nodeset restapi slurmcluster token"},
		{"all but what somebody else serves, wherever that stands", "-loginset,cluster", "accounting controller nodeset restapi slurmcluster token"},
		{"all but SlurmClusters", "*,-cluster", "accounting controller loginset nodeconfigurator nodeset restapi token"},
		{"in any case", "NodeSet", "nodeset"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			enabled, err := parsed(t, "--controllers="+tt.flag).enabled()
			if err != nil {
				t.Fatal(err)
			}
			var on []string
			for _, kind := range operator.Kinds() {
				if enabled[kind] {
					on = append(on, kind)
				}
			}
			if got := strings.Join(on, " "); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}

func TestMistakesOnTheCommandLine(t *testing.T) {
	tests := []struct {
		args []string
		want string
	}{
		{[]string{"--controllers=nodset"}, `--controllers has "nodset", which is not a controller: use accounting, activecheck, activecheckjob, cluster, controller, k8snodes, loginset, nodeconfigurator, nodeset, podephemeralstoragecheck, restapi, rollingupdate, serviceaccount, slurmapiclients, slurmcluster, slurmnodes, token, topology`},
		{[]string{"--log-level=loud"}, `--log-level is "loud": use debug, info, warn or error`},
		{[]string{"--log-format=xml"}, `--log-format is "xml": use json or plain`},
		{[]string{"--max-concurrent-reconciles=0"}, "--max-concurrent-reconciles is 0: it must be at least 1"},
		{[]string{"--nodeset-workers=-1"}, "--nodeset-workers is -1: it must not be negative"},
		{[]string{"--slurmrestd-url=10.0.0.7:6820"}, "--slurmrestd-url: reading the endpoint of slurmrestd: it is no URL"},
		{[]string{"--slurmrestd-url=slurm"}, "--slurmrestd-url: reading the endpoint of slurmrestd: it is not like http://host:port"},
		{[]string{"--image-tag="}, "--image-registry and --image-tag must not be empty"},
		{[]string{"--log-level=loud", "--image-registry="}, "--log-level is \"loud\": use debug, info, warn or error\n--image-registry and --image-tag must not be empty"},
		{[]string{"--max-nodes-drained-by-checks=0"}, `--max-nodes-drained-by-checks: "0": it must be at least 1, and at least 1 %`},
		{[]string{"--cluster-metrics-interval=5ms"}, "--cluster-metrics-interval is 5ms: it must be 0 or at least 1s"},
		{[]string{"--status-page", "--metrics-addr=0"}, "--status-page needs --metrics-addr and --metrics-secure: the metrics server serves it and authenticates callers"},
		{[]string{"--status-page", "--metrics-secure=false"}, "--status-page needs --metrics-addr and --metrics-secure: the metrics server serves it and authenticates callers"},
		{[]string{"--ephemeral-storage-threshold=100.5"}, "--ephemeral-storage-threshold is 100.5: it must be from 0 to 100"},
		{[]string{"--ephemeral-storage-threshold=70"}, "--ephemeral-storage-resume-threshold is 80: it must be above 0, and below --ephemeral-storage-threshold, which is 70"},
		{[]string{"--kubelet-port=0"}, "--kubelet-port is 0: it must be from 1 to 65535"},
		{[]string{"--kubelet-request-timeout=-1s"}, "--kubelet-request-timeout is -1s: it must be above 0"},
		{[]string{"--kubelet-ca-file=/missing"}, "--kubelet-ca-file: stat /missing: no such file or directory"},
		{[]string{"--kubelet-ca-file=/dev/null", "--kubelet-insecure-skip-tls-verify"}, "--kubelet-ca-file and --kubelet-insecure-skip-tls-verify exclude one another"},
		{[]string{"start"}, `unexpected argument "start": the manager takes flags only, see --help`},
		{[]string{"--no-such-flag"}, "flag provided but not defined: -no-such-flag"},
		{[]string{"--cache-sync-timeout=soon"}, `invalid value "soon" for flag -cache-sync-timeout: parse error`},
	}
	for _, tt := range tests {
		t.Run(strings.Join(tt.args, " "), func(t *testing.T) {
			_, err := parse(tt.args, noEnv, &bytes.Buffer{})
			if err == nil || err.Error() != tt.want {
				t.Errorf("%v, want %s", err, tt.want)
			}
		})
	}
}

func TestAMistakeIsSaidOnceAndWithoutAllFlags(t *testing.T) {
	var output bytes.Buffer
	err := run([]string{"--no-such-flag"}, noEnv, &output)
	if err == nil || output.Len() > 0 {
		t.Errorf("%v, and before that\n%s", err, output.String())
	}
}

func TestHelpNamesEveryFlagAndIsNoFailure(t *testing.T) {
	var output bytes.Buffer
	if err := run([]string{"--help"}, noEnv, &output); !errors.Is(err, flag.ErrHelp) {
		t.Fatal(err)
	}
	for _, want := range []string{"Usage: manager [flags]", "-leader-elect", "-nodeset-workers", "-namespaces", "-slurmrestd-url", "-zap-log-level"} {
		if !strings.Contains(output.String(), want) {
			t.Errorf("the help lacks %q", want)
		}
	}
}

func TestDomain(t *testing.T) {
	tests := []struct{ name, resolv, flag, want string }{
		{"in a pod", "nameserver 10.96.0.10\nsearch ns1.svc.cluster.example svc.cluster.example cluster.example\noptions ndots:5\n", "", "cluster.example"},
		{"with a dot at the end", "search svc.corp.example.\n", "", "corp.example"},
		{"the flag wins", "search svc.a\n", "b", "b"},
		{"outside of a cluster", "search corp.example\nnameserver 1.1.1.1\n", "", "cluster.local"},
		{"a comment is none", "# search svc.x\n;search svc.y\n", "", "cluster.local"},
		{"the last list counts, as in resolv.conf(5)", "search svc.a\nsearch svc.b\n", "", "b"},
		{"nothing", "", "", "cluster.local"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "resolv.conf")
			if err := os.WriteFile(file, []byte(tt.resolv), 0o600); err != nil {
				t.Fatal(err)
			}
			if got := (&options{clusterDomain: tt.flag}).domain(file); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
	if got := (&options{}).domain(filepath.Join(t.TempDir(), "missing")); got != "cluster.local" {
		t.Errorf("without a file it is %s", got)
	}
}

func TestOwnNamespace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "namespace")
	o := &options{leaderElectNamespace: "of-the-lease"}
	if got := o.ownNamespace(file); got != "of-the-lease" {
		t.Errorf("outside of a pod it is %q", got)
	}
	if err := os.WriteFile(file, []byte("of-the-pod\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := o.ownNamespace(file); got != "of-the-pod" {
		t.Errorf("in a pod it is %q", got)
	}
}
