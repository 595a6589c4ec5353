// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/health"
	"github.com/coxswain-hpc/coxswain/internal/health/podstorage"
	"github.com/coxswain-hpc/coxswain/internal/operator"
	"github.com/coxswain-hpc/coxswain/internal/operator/command"
	"github.com/coxswain-hpc/coxswain/internal/operator/logging"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
	"github.com/coxswain-hpc/coxswain/internal/webhook"
)

// options are the command line. The flags are those of both predecessors, so that their charts' arguments keep working;
// where both had one under different names, both names set the same value.
type options struct {
	healthAddr               string
	metrics                  command.Metrics
	statusPage               bool
	clusterMetricsInterval   time.Duration
	tracing                  tracingOptions
	enableHTTP2              bool
	leaderElect              bool
	leaderElectNamespace     string
	namespaces               []string
	controllers              []string
	workers                  map[string]*int
	maxConcurrent            int
	cacheSyncTimeout         time.Duration
	imageRegistry, imageTag  string
	keepSoperatorImages      bool
	operatorImage            string
	clusterDomain            string
	slurmrestdURL            string
	propagatedNodeConditions []string
	maintenanceTypes         []string
	maintenanceIgnored       string
	maxDrainedByChecks       string
	measureStorage           bool
	storage                  podstorage.Options
	rebootDegraded           bool
	machineNamespaces        []string
	replaceNodes             bool
	deleteNotReady           bool
	notReadyTimeout          time.Duration
	topologyLabelPrefix      string
	destructive              int
	profile                  bool
	profileAddr              string
	logLevel, logFormat      string
	serveWebhooks            bool
	webhooks                 webhook.Flags
}

// program returns the manager on the command line.
func program() command.Program {
	return command.Program{
		Name: "manager",
		About: `The Coxswain manager runs Slurm clusters on Kubernetes.

It watches the kinds of slurm.nebius.ai and slinky.slurm.net and keeps the objects they stand for.
Outside a pod it takes the cluster from the KUBECONFIG environment variable.
`,
		Ignored: []map[string]string{logging.Ignored(), {
			"enable-topology-controller": "slurmConfig.topologyPlugin of a SlurmCluster decides whether it has a topology",
			"slurmclient-workers":        "the operator asks each Slurm cluster as often as its limits allow",
			"feature-gates":              "there are none",
		}},
	}
}

// parse reads the command line; args are without the program's name. flag.ErrHelp means that help was asked for and
// printed.
func parse(args []string, getenv func(string) string, output io.Writer) (*options, error) {
	o := &options{workers: map[string]*int{}}
	err := program().Parse(args, output, func(fs *flag.FlagSet) { o.bind(fs, getenv) })
	if err != nil {
		return nil, err
	}
	return o, o.validate()
}

func (o *options) bind(fs *flag.FlagSet, getenv func(string) string) {
	for _, name := range []string{"health-addr", "health-probe-bind-address"} {
		fs.StringVar(&o.healthAddr, name, ":8081", "`address` of /healthz and /readyz")
	}
	o.metrics.Bind(fs, ":8080", "metrics-addr", "metrics-bind-address")
	fs.BoolVar(&o.statusPage, "status-page", false,
		"serve the status page at /ui on the metrics server, to callers whose token may get the non-resource URLs /ui and /ui/*")
	fs.DurationVar(&o.clusterMetricsInterval, "cluster-metrics-interval", 0,
		"interval at which the metrics of Slurm clusters at /metrics/clusters are collected; 0 switches them off")
	o.tracing.bind(fs, getenv)
	fs.BoolVar(&o.enableHTTP2, "enable-http2", false, "allow HTTP/2 for /metrics")
	fs.BoolVar(&o.leaderElect, "leader-elect", true, "act only while holding the lease coxswain-manager")
	for _, name := range []string{"leader-elect-namespace", "operator-namespace"} {
		fs.StringVar(&o.leaderElectNamespace, name, "", "`namespace` of the lease; default: the pod's own")
	}
	o.namespaces = command.List(getenv("SLURM_OPERATOR_WATCH_NAMESPACES"))
	command.BindList(fs, &o.namespaces, "namespaces",
		"comma-separated `namespaces` to watch; empty or * means all (env SLURM_OPERATOR_WATCH_NAMESPACES)")
	o.controllers = command.List(getenv("SLURM_OPERATOR_CONTROLLERS"))
	command.BindList(fs, &o.controllers, "controllers",
		"comma-separated `controllers` to run: * for all, name to add, -name to leave out (env SLURM_OPERATOR_CONTROLLERS)")
	for _, kind := range operator.Kinds() {
		o.workers[kind] = fs.Int(kind+"-workers", 0, "objects of this kind to reconcile at once; default: --max-concurrent-reconciles")
	}
	fs.IntVar(&o.maxConcurrent, "max-concurrent-reconciles", 4, "objects of one kind to reconcile at once")
	fs.DurationVar(&o.cacheSyncTimeout, "cache-sync-timeout", 2*time.Minute, "time within which caches must fill at start")
	fs.StringVar(&o.imageRegistry, "image-registry", "ghcr.io/coxswain-hpc", "registry of the images used where an object names none")
	fs.StringVar(&o.imageTag, "image-tag", "26.05", "tag of those images")
	fs.BoolVar(&o.keepSoperatorImages, "keep-soperator-images", false, "run the images of Soperator that a SlurmCluster names; without this flag, Coxswain's images of the same role run instead")
	fs.StringVar(&o.operatorImage, "sconfigcontroller-image", "",
		"image that has the program sconfigcontroller, as the operator's has; default: <image-registry>/operator:<image-tag>")
	fs.StringVar(&o.clusterDomain, "cluster-domain", "", "DNS domain of the cluster; default: from /etc/resolv.conf, else cluster.local")
	command.BindList(fs, &o.propagatedNodeConditions, "propagated-node-conditions",
		"comma-separated condition `types` of Kubernetes nodes whose messages become the drain reason of workers on a cordoned node")
	o.bindHealth(fs, getenv)
	fs.StringVar(&o.topologyLabelPrefix, "topology-label-prefix", cmp.Or(getenv("TOPOLOGY_LABEL_PREFIX"), operator.DefaultTopologyLabelPrefix),
		"`prefix` of the labels <prefix>/tier-N of Kubernetes nodes that show where they are in the network (env TOPOLOGY_LABEL_PREFIX)")
	fs.StringVar(&o.slurmrestdURL, "slurmrestd-url", "", "`URL` of a slurmrestd to ask instead of the RestApis' Services, for a manager outside the cluster")
	fs.IntVar(&o.destructive, "destructive-actions-per-minute", 0, "maximum number of workers to delete in one Slurm cluster within a minute; default: half of its nodes, at least 20")
	fs.BoolVar(&o.profile, "profile", false, "serve Go profiles")
	fs.StringVar(&o.profileAddr, "profile-addr", "localhost:6060", "`address` of the Go profiles")
	fs.BoolVar(&o.serveWebhooks, "webhook", false, "serve the webhooks in this program; the program webhook is then not needed")
	o.webhooks.Bind(fs, "webhook-")
	logging.Bind(fs, &o.logLevel, &o.logFormat)
}

// bindHealth declares the flags of soperatorchecks.
func (o *options) bindHealth(fs *flag.FlagSet, getenv func(string) string) {
	o.maintenanceTypes = []string{health.DefaultMaintenanceType}
	command.BindList(fs, &o.maintenanceTypes, "maintenance-condition-type",
		"comma-separated condition `types` of Kubernetes nodes that announce maintenance, for which workers are drained; empty means none (default "+
			health.DefaultMaintenanceType+")")
	o.maintenanceIgnored = getenv("MAINTENANCE_IGNORE_NODE_LABELS")
	fs.StringVar(&o.maintenanceIgnored, "maintenance-ignore-node-labels", o.maintenanceIgnored,
		"comma-separated `labels`, as key=value, of Kubernetes nodes whose workers are not drained for maintenance (env MAINTENANCE_IGNORE_NODE_LABELS)")
	fs.StringVar(&o.maxDrainedByChecks, "max-nodes-drained-by-checks", health.DefaultDrainLimit,
		"maximum `number` or percentage of the workers of a NodeSet that checks may take out of service at the same time; at least one")
	fs.BoolVar(&o.rebootDegraded, "reboot-degraded-nodes", false,
		"reboot the machines of workers that Slurm drains with \"Kill task failed\", where a rebooter runs; needs the right to patch nodes/status")
	fs.BoolVar(&o.replaceNodes, "enable-node-replacement", false,
		"delete the Node of a machine for which maintenance is announced, when no job runs there and a rebooter has drained it; needs the rights to delete nodes and to patch nodes/status")
	fs.BoolVar(&o.deleteNotReady, "delete-not-ready-nodes", false,
		"delete a Node with workers that has not been ready for --not-ready-timeout, when no job runs there; needs the same rights")
	command.BindList(fs, &o.machineNamespaces, "machine-namespaces",
		"comma-separated `namespaces` whose workers may have their machines rebooted and replaced; empty means all")
	fs.DurationVar(&o.notReadyTimeout, "not-ready-timeout", health.DefaultNotReadyTimeout, "how long a Node must have been not ready before it is deleted; longer than a reboot takes")
	o.bindStorage(fs)
}

// bindStorage declares the flags about the ephemeral storage of workers.
func (o *options) bindStorage(fs *flag.FlagSet) {
	fs.BoolVar(&o.measureStorage, "ephemeral-storage-check", false,
		"ask kubelets once a minute how much of its limits of ephemeral storage each worker uses; needs the right to get nodes/stats")
	fs.Float64Var(&o.storage.Thresholds.Drain, "ephemeral-storage-threshold", health.DefaultStorageThreshold,
		"`percent` of its limit of ephemeral storage above which a worker is drained")
	fs.Float64Var(&o.storage.Thresholds.Resume, "ephemeral-storage-resume-threshold", health.DefaultStorageResumeThreshold,
		"`percent` below which it is undrained")
	kubelet := &o.storage.Kubelet
	fs.IntVar(&kubelet.Port, "kubelet-port", podstorage.DefaultKubeletPort, "`port` of kubelets")
	fs.DurationVar(&kubelet.RequestTimeout, "kubelet-request-timeout", podstorage.DefaultRequestTimeout, "time within which a kubelet must answer")
	fs.StringVar(&kubelet.CAFile, "kubelet-ca-file", "", "`file` with the CA certificates of kubelets' serving certificates; default: those of the API server")
	fs.BoolVar(&kubelet.InsecureSkipTLSVerify, "kubelet-insecure-skip-tls-verify", false,
		"do not verify the kubelets' serving certificates: whoever answers at the address of a node gets the token")
	fs.StringVar(&kubelet.Account.Name, "kubelet-service-account", "",
		"`name` of the ServiceAccount whose tokens kubelets get; the operator must be allowed to create them. Default: the operator's own, whose token kubelets then see")
	fs.StringVar(&kubelet.Account.Namespace, "kubelet-service-account-namespace", "", "`namespace` of that ServiceAccount")
}

// minNotReadyTimeout is the shortest time-out: a kubelet is missed after 40 s, and one that is restarted is back within a minute.
const minNotReadyTimeout = time.Minute

// minClusterMetricsInterval is the shortest time between two collections.
const minClusterMetricsInterval = time.Second

// storageOptions returns how ephemeral storage is measured; nil for not at all.
func (o *options) storageOptions() *podstorage.Options {
	if !o.measureStorage {
		return nil
	}
	return &o.storage
}

// health returns which conditions of Kubernetes nodes take workers out of service.
func (o *options) health() (health.Conditions, error) {
	out := health.Conditions{Types: append(slices.Clone(o.maintenanceTypes), health.HardwareIssuesSuspected), IgnoredLabels: map[string]string{}, RebootDegraded: o.rebootDegraded, ReplaceNodes: o.replaceNodes, Namespaces: o.machineNamespaces}
	if o.deleteNotReady {
		out.NotReadyTimeout = o.notReadyTimeout
	}
	for _, entry := range command.List(o.maintenanceIgnored) {
		key, value, ok := strings.Cut(entry, "=")
		if !ok || key == "" {
			return out, fmt.Errorf("--maintenance-ignore-node-labels has %q: a label is written key=value", entry)
		}
		out.IgnoredLabels[key] = value
	}
	return out, nil
}

func (o *options) validate() error {
	var errs []error
	if _, err := o.health(); err != nil {
		errs = append(errs, err)
	}
	if o.statusPage && (o.metrics.Address == "0" || !o.metrics.Secure) {
		errs = append(errs, errors.New("--status-page needs --metrics-addr and --metrics-secure: the metrics server serves it and authenticates callers"))
	}
	if d := o.clusterMetricsInterval; d != 0 && d < minClusterMetricsInterval {
		errs = append(errs, fmt.Errorf("--cluster-metrics-interval is %s: it must be 0 or at least %s", d, minClusterMetricsInterval))
	}
	errs = append(errs, o.tracing.validate())
	if o.notReadyTimeout < minNotReadyTimeout {
		errs = append(errs, fmt.Errorf("--not-ready-timeout is %s: it must be at least %s", o.notReadyTimeout, minNotReadyTimeout))
	}
	if _, err := health.ParseDrainLimit(o.maxDrainedByChecks); err != nil {
		errs = append(errs, fmt.Errorf("--max-nodes-drained-by-checks: %w", err))
	}
	errs = append(errs, o.storage.Validate())
	if _, err := o.enabled(); err != nil {
		errs = append(errs, err)
	}
	if _, err := o.logHandler(io.Discard); err != nil {
		errs = append(errs, err)
	}
	if o.maxConcurrent < 1 {
		errs = append(errs, fmt.Errorf("--max-concurrent-reconciles is %d: it must be at least 1", o.maxConcurrent))
	}
	for _, kind := range operator.Kinds() {
		if n := *o.workers[kind]; n < 0 {
			errs = append(errs, fmt.Errorf("--%s-workers is %d: it must not be negative", kind, n))
		}
	}
	if o.slurmrestdURL != "" {
		if _, err := rest.ParseEndpoint(o.slurmrestdURL); err != nil {
			errs = append(errs, fmt.Errorf("--slurmrestd-url: %w", err))
		}
	}
	if o.serveWebhooks {
		errs = append(errs, o.webhooks.Validate("webhook-"))
	}
	if o.imageRegistry == "" || o.imageTag == "" {
		errs = append(errs, errors.New("--image-registry and --image-tag must not be empty"))
	}
	return errors.Join(errs...)
}

// concurrency returns the number of objects of a kind that are reconciled at once.
func (o *options) concurrency(kind string) int {
	if n := *o.workers[kind]; n > 0 {
		return n
	}
	return o.maxConcurrent
}

// logHandler makes the handler that all logging goes through.
func (o *options) logHandler(w io.Writer) (slog.Handler, error) {
	return logging.Handler(w, o.logLevel, o.logFormat)
}

// ownNamespace returns the namespace that the manager's own pod is in, by the file that Kubernetes gives it, or else by the flag;
// empty outside of a cluster.
func (o *options) ownNamespace(file string) string {
	data, err := os.ReadFile(file) //nolint:gosec // the path is that of the service account, or a test's
	if err != nil {
		return o.leaderElectNamespace
	}
	return strings.TrimSpace(string(data))
}

// domain returns the cluster's DNS domain: the flag, or what follows "svc." in the search list of resolv.conf.
func (o *options) domain(resolvConf string) string {
	if o.clusterDomain != "" {
		return o.clusterDomain
	}
	data, err := os.ReadFile(resolvConf) //nolint:gosec // the path is /etc/resolv.conf, or a test's
	if err != nil {
		return "cluster.local"
	}
	domain := ""
	for line := range strings.Lines(string(data)) {
		if fields := strings.Fields(line); len(fields) > 0 && fields[0] == "search" {
			domain = serviceDomain(fields[1:]) // of several lists the last counts, resolv.conf(5)
		}
	}
	return cmp.Or(domain, "cluster.local")
}

// serviceDomain returns what follows "svc." in a search list.
func serviceDomain(search []string) string {
	for _, entry := range search {
		if domain, ok := strings.CutPrefix(entry, "svc."); ok {
			return strings.TrimSuffix(domain, ".")
		}
	}
	return ""
}
