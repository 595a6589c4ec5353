// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package operator puts the controllers together to one manager, for the program and for tests alike.
package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/controller/slinky/slurmcaches"
	"github.com/coxswain-hpc/coxswain/internal/health/budget"
	"github.com/coxswain-hpc/coxswain/internal/health/podstorage"
	"github.com/coxswain-hpc/coxswain/internal/observe/tracing"
	"github.com/coxswain-hpc/coxswain/internal/reconcile/reference"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/controller/kubernetesnode"
	"github.com/coxswain-hpc/coxswain/internal/controller/nebius/activecheck"
	"github.com/coxswain-hpc/coxswain/internal/controller/nebius/nodeconfigurator"
	nebiusnodeset "github.com/coxswain-hpc/coxswain/internal/controller/nebius/nodeset"
	"github.com/coxswain-hpc/coxswain/internal/controller/nebius/notserved"
	"github.com/coxswain-hpc/coxswain/internal/controller/nebius/powerstate"
	"github.com/coxswain-hpc/coxswain/internal/controller/nebius/slurmcluster"
	"github.com/coxswain-hpc/coxswain/internal/controller/slinky/accounting"
	"github.com/coxswain-hpc/coxswain/internal/controller/slinky/controller"
	"github.com/coxswain-hpc/coxswain/internal/controller/slinky/loginset"
	"github.com/coxswain-hpc/coxswain/internal/controller/slinky/nodeset"
	"github.com/coxswain-hpc/coxswain/internal/controller/slinky/restapi"
	"github.com/coxswain-hpc/coxswain/internal/controller/slinky/token"
	"github.com/coxswain-hpc/coxswain/internal/controller/slinky/workerkeys"
	"github.com/coxswain-hpc/coxswain/internal/controller/worker"
	"github.com/coxswain-hpc/coxswain/internal/health"
	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"
	"github.com/coxswain-hpc/coxswain/internal/render/image"
)

// Options are what the controllers work with.
type Options struct {
	// Namespace is the namespace of the operator's own pods; empty when it runs outside of the cluster.
	Namespace string
	// Namespaces are those to watch; none, or one that is *, means all.
	Namespaces []string
	// Enabled is which controllers run, by the names of Kinds; nil means all.
	Enabled map[string]bool
	// Concurrency is the number of objects of a kind that are reconciled at once; nil means one.
	Concurrency func(kind string) int
	// Images are used where an object names none.
	Images image.Set
	// ClusterDomain is the DNS domain of the Kubernetes cluster.
	ClusterDomain string
	// SlurmrestdURL is asked instead of the Services of RestApis, by a manager outside of the cluster.
	SlurmrestdURL string
	// PropagatedNodeConditions are the condition types of Kubernetes nodes that give the reason why their workers are drained.
	PropagatedNodeConditions []string
	// Health is which conditions of Kubernetes nodes take their workers out of service, and whether machines are rebooted.
	Health health.Conditions
	// DrainLimit is how many workers of a NodeSet checks may take out of service at the same time.
	DrainLimit health.DrainLimit
	// Storage is how the ephemeral storage of workers is measured; nil is not at all.
	Storage *podstorage.Options
	// TopologyLabelPrefix is the prefix of the labels <prefix>/tier-N of Kubernetes nodes; empty is DefaultTopologyLabelPrefix.
	TopologyLabelPrefix string
	// Caches are the options of the Slurm caches.
	Caches slurmcache.Options
	// Metrics is where the metrics of the Slurm caches and of the NodeSets are registered; nil registers none.
	Metrics prometheus.Registerer
	// StatusPage is true if the server of the metrics serves web pages that show how clusters are.
	StatusPage bool
	// ClusterMetricsInterval is the time between two collections of the metrics of Slurm clusters, which the server of the metrics serves;
	// 0 serves none.
	ClusterMetricsInterval time.Duration
	// Traces makes spans of what the operator does; nil makes none.
	Traces *tracing.Tracing
}

// DefaultTopologyLabelPrefix is the prefix of the labels with the place of a Kubernetes node in the network.
const DefaultTopologyLabelPrefix = "topology.nebius.com"

// Kinds returns the names by which controllers are switched.
func Kinds() []string {
	return []string{"accounting", "controller", "loginset", "nodeconfigurator", "nodeset", "restapi", "slurmcluster", "token"}
}

// Scheme has the kinds of both APIs and those of Kubernetes.
func Scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(slinkyv1beta1.AddToScheme(scheme))
	utilruntime.Must(nebiusv1.AddToScheme(scheme))
	utilruntime.Must(nebiusv1alpha1.AddToScheme(scheme))
	return scheme
}

// Each cache of kube.Definitions is of one name, so that no other CRD needs to be readable:
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,resourceNames=servicemonitors.monitoring.coreos.com;podmonitors.monitoring.coreos.com;mariadbs.k8s.mariadb.com;grants.k8s.mariadb.com;apparmorprofiles.security-profiles-operator.x-k8s.io,verbs=list;watch

// NewManager makes a manager with the controllers, ready to start. base has what does not concern them: metrics, probes,
// leader election, log; its Scheme and Cache are filled in.
func NewManager(ctx context.Context, config *rest.Config, base ctrl.Options, o Options) (ctrl.Manager, error) {
	base.Scheme = Scheme()
	base.Cache = cache.Options{
		DefaultNamespaces: watched(o.Namespaces), ByObject: cached(o.Health.Writes()), DefaultTransform: normalize,
	}
	if o.Traces != nil {
		config = rest.CopyConfig(config)
		config.Wrap(o.Traces.Kubernetes)
		o.Caches.Trace = o.Traces
	}
	mgr, err := ctrl.NewManager(config, base)
	if err != nil {
		return nil, fmt.Errorf("making the manager: %w", err)
	}
	definitions, err := kube.NewDefinitions(config, mgr, slices.Concat(controller.Definitions(), slurmcluster.Definitions())...)
	if err != nil {
		return nil, err
	}
	references, err := newReferences(config, mgr, o.Namespaces)
	if err != nil {
		return nil, err
	}
	if err := addIndexes(ctx, mgr); err != nil {
		return nil, err
	}
	return mgr, addControllers(ctx, mgr, references, definitions, o)
}

// addIndexes adds every index, whichever controllers run: they look at each other's kinds.
func addIndexes(ctx context.Context, mgr ctrl.Manager) error {
	return errors.Join(
		kube.SetupIndexes(ctx, mgr.GetFieldIndexer(), owned()...),
		accounting.Index(ctx, mgr), controller.Index(ctx, mgr), loginset.Index(ctx, mgr), nodeset.Index(ctx, mgr), restapi.Index(ctx, mgr), token.Index(ctx, mgr),
		activecheck.Index(ctx, mgr),
	)
}

// running keeps the Slurm caches open, and the metrics of the Slurm caches and of others registered, while the manager leads.
func running(caches *slurmcache.Registry, metrics prometheus.Registerer, others ...prometheus.Collector) manager.RunnableFunc {
	return func(ctx context.Context) error {
		if metrics != nil {
			for _, c := range append(others, caches) {
				if err := metrics.Register(c); err != nil {
					return fmt.Errorf("registering metrics: %w", err)
				}
				defer metrics.Unregister(c)
			}
		}
		return caches.Start(ctx)
	}
}

// measuring measures the ephemeral storage of workers while the manager leads, if that is asked for.
func measuring(mgr ctrl.Manager, caches *slurmcache.Registry, budgets *budget.Budgets, o *podstorage.Options) (*podstorage.Meter, error) {
	if o == nil {
		return nil, nil //nolint:nilnil // a nil Meter knows nothing
	}
	meter, err := podstorage.New(mgr.GetConfig(), *o, mgr.GetClient(), mgr.GetClient(), caches, budgets, clock.RealClock{})
	if err != nil {
		return nil, err
	}
	if err := mgr.Add(meter); err != nil {
		return nil, fmt.Errorf("adding the measurement of ephemeral storage: %w", err)
	}
	return meter, nil
}

func addControllers(ctx context.Context, mgr ctrl.Manager, references cache.Cache, definitions kube.Definitions, o Options) error {
	caches, budgets := slurmcache.NewRegistry(o.Caches), budget.New(o.DrainLimit, clock.RealClock{})
	if err := mgr.Add(running(caches, o.Metrics, nodeset.Metrics(mgr.GetClient(), budgets))); err != nil {
		return fmt.Errorf("adding the Slurm caches: %w", err)
	}
	if o.StatusPage {
		if err := addStatusPage(ctx, mgr, caches, o.Enabled == nil || o.Enabled["slurmcluster"]); err != nil {
			return err
		}
	}
	if o.ClusterMetricsInterval > 0 {
		if err := addClusterMetrics(mgr, caches, o.ClusterMetricsInterval); err != nil {
			return err
		}
	}
	meter, err := measuring(mgr, caches, budgets, o.Storage)
	if err != nil {
		return err
	}
	applier := kube.NewApplier(mgr.GetClient(), mgr.GetAPIReader())
	process := string(uuid.NewUUID())
	base := func(kind string) reconcile.Base {
		b := reconcile.Base{
			Reader:   reference.Reader{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Metadata: references},
			Applier:  applier,
			Recorder: mgr.GetEventRecorder("coxswain-" + kind), Clock: clock.RealClock{},
			Images: o.Images, ClusterDomain: o.ClusterDomain, Concurrency: 1, Process: process, Traces: o.Traces,
		}
		if o.Concurrency != nil {
			b.Concurrency = o.Concurrency(kind)
		}
		return b
	}
	setups := map[string][]func(reconcile.Base) error{
		"accounting": {func(b reconcile.Base) error { return accounting.Setup(mgr, b) }},
		"controller": {
			func(b reconcile.Base) error { return controller.Setup(mgr, b, caches, definitions) },
			func(b reconcile.Base) error { return slurmcaches.Setup(mgr, b, caches, o.SlurmrestdURL) },
		},
		"loginset":         {func(b reconcile.Base) error { return loginset.Setup(mgr, b) }},
		"nodeconfigurator": {func(b reconcile.Base) error { return nodeconfigurator.Setup(mgr, b) }},
		"nodeset": {
			func(b reconcile.Base) error { return nodeset.Setup(mgr, b, caches, budgets) },
			func(b reconcile.Base) error {
				return worker.Setup(ctx, mgr, b, caches, o.PropagatedNodeConditions, o.Health, meter)
			},
			func(b reconcile.Base) error { return workerkeys.Setup(mgr, b) },
			func(b reconcile.Base) error {
				if !o.Health.Writes() {
					return nil
				}
				return kubernetesnode.Setup(ctx, mgr, b, caches, o.Health)
			},
		},
		"restapi": {func(b reconcile.Base) error { return restapi.Setup(mgr, b, o.Namespace) }},
		"slurmcluster": {
			func(b reconcile.Base) error {
				return slurmcluster.Setup(ctx, mgr, b, definitions, cmp.Or(o.TopologyLabelPrefix, DefaultTopologyLabelPrefix))
			},
			func(b reconcile.Base) error { return nebiusnodeset.Setup(ctx, mgr, b) },
			func(b reconcile.Base) error { return powerstate.Setup(mgr, b, caches) },
			func(b reconcile.Base) error { return activecheck.Setup(mgr, b, caches, budgets) },
			func(b reconcile.Base) error { return notserved.Setup(mgr, b) },
		},
		"token": {func(b reconcile.Base) error { return token.Setup(mgr, b) }},
	}
	for _, kind := range Kinds() {
		if o.Enabled != nil && !o.Enabled[kind] {
			continue
		}
		for _, setup := range setups[kind] {
			if err := setup(base(kind)); err != nil {
				return err
			}
		}
	}
	return nil
}
