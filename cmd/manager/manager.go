// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"reflect"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/controller/accounting"
	"github.com/coxswain-hpc/coxswain/internal/controller/component"
	"github.com/coxswain-hpc/coxswain/internal/controller/controller"
	"github.com/coxswain-hpc/coxswain/internal/controller/loginset"
	"github.com/coxswain-hpc/coxswain/internal/controller/nebiusnodeset"
	"github.com/coxswain-hpc/coxswain/internal/controller/nodeset"
	"github.com/coxswain-hpc/coxswain/internal/controller/restapi"
	"github.com/coxswain-hpc/coxswain/internal/controller/slurmcluster"
	"github.com/coxswain-hpc/coxswain/internal/controller/slurmlink"
	"github.com/coxswain-hpc/coxswain/internal/controller/worker"
	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/link"
	"github.com/coxswain-hpc/coxswain/internal/render/image"
	"github.com/coxswain-hpc/coxswain/internal/render/label"
)

// leaseName is the lease by which replicas agree on who acts.
const leaseName = "coxswain-manager"

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(slinkyv1beta1.AddToScheme(scheme))
	utilruntime.Must(nebiusv1.AddToScheme(scheme))
	utilruntime.Must(nebiusv1alpha1.AddToScheme(scheme))
	return scheme
}

// newManager makes the manager with all its controllers, ready to start.
func newManager(ctx context.Context, o *options, logger logr.Logger) (ctrl.Manager, error) {
	restConfig, err := ctrl.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the Kubernetes cluster: %w", err)
	}
	// Back-pressure is the API server's business (priority and fairness), not a client-side limit's.
	restConfig.QPS, restConfig.Burst = -1, -1
	mgr, err := ctrl.NewManager(restConfig, ctrl.Options{
		Scheme:                        newScheme(),
		Logger:                        logger,
		Metrics:                       metricsOptions(o),
		HealthProbeBindAddress:        o.healthAddr,
		LeaderElection:                o.leaderElect,
		LeaderElectionID:              leaseName,
		LeaderElectionNamespace:       o.leaderElectNamespace,
		LeaderElectionReleaseOnCancel: true,
		Cache:                         cache.Options{DefaultNamespaces: watched(o.namespaces), ByObject: cached(), DefaultTransform: cache.TransformStripManagedFields()},
		Controller:                    config.Controller{CacheSyncTimeout: o.cacheSyncTimeout},
	})
	if err != nil {
		return nil, fmt.Errorf("making the manager: %w", err)
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, fmt.Errorf("adding the health check: %w", err)
	}
	if err := mgr.AddReadyzCheck("ping", healthz.Ping); err != nil {
		return nil, fmt.Errorf("adding the readiness check: %w", err)
	}
	references, err := newReferences(restConfig, mgr, o)
	if err != nil {
		return nil, err
	}
	return mgr, addControllers(ctx, mgr, o, references)
}

// newReferences makes the cache of the metadata of all Secrets and ConfigMaps, by which changes of users' own are noticed.
func newReferences(restConfig *rest.Config, mgr ctrl.Manager, o *options) (cache.Cache, error) {
	references, err := cache.New(restConfig, cache.Options{
		Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient(), DefaultNamespaces: watched(o.namespaces),
		// Only namespace, name and version are asked for; a big cluster has many Secrets.
		DefaultTransform: func(o any) (any, error) {
			if m, ok := o.(*metav1.PartialObjectMetadata); ok {
				m.Labels, m.Annotations, m.ManagedFields, m.OwnerReferences = nil, nil, nil, nil
			}
			return o, nil
		},
	})
	if err != nil {
		return nil, fmt.Errorf("making the cache of references: %w", err)
	}
	if err := mgr.Add(references); err != nil {
		return nil, fmt.Errorf("adding the cache of references: %w", err)
	}
	return references, nil
}

func addControllers(ctx context.Context, mgr ctrl.Manager, o *options, references cache.Cache) error {
	enabled, err := o.enabled()
	if err != nil {
		return err
	}
	if err := kube.SetupIndexes(ctx, mgr.GetFieldIndexer(), indexed()...); err != nil {
		return err
	}
	links := link.NewRegistry(link.Options{})
	if err := mgr.Add(links); err != nil {
		return fmt.Errorf("adding the links to Slurm: %w", err)
	}
	base := func(kind string) component.Base {
		return component.Base{
			Client: mgr.GetClient(), Live: mgr.GetAPIReader(), References: references,
			Applier:  kube.NewApplier(mgr.GetClient(), mgr.GetAPIReader()),
			Recorder: mgr.GetEventRecorder("coxswain-" + kind), Clock: clock.RealClock{},
			Images:        image.Set{Registry: o.imageRegistry, Tag: o.imageTag},
			ClusterDomain: o.domain("/etc/resolv.conf"), Concurrency: o.concurrency(kind),
		}
	}
	setups := []struct {
		kind  string
		setup func(component.Base) error
	}{
		{"controller", func(b component.Base) error {
			return firstError(controller.Setup(ctx, mgr, b), slurmlink.Setup(mgr, b, links, o.slurmrestdURL))
		}},
		{"accounting", func(b component.Base) error { return accounting.Setup(ctx, mgr, b) }},
		{"restapi", func(b component.Base) error { return restapi.Setup(ctx, mgr, b) }},
		{"loginset", func(b component.Base) error { return loginset.Setup(ctx, mgr, b) }},
		{"nodeset", func(b component.Base) error {
			return firstError(nodeset.Setup(ctx, mgr, b, links), worker.Setup(ctx, mgr, b, links))
		}},
		{"slurmcluster", func(b component.Base) error {
			return firstError(slurmcluster.Setup(ctx, mgr, b), nebiusnodeset.Setup(ctx, mgr, b))
		}},
	}
	for _, s := range setups {
		if !enabled[s.kind] {
			continue
		}
		if err := s.setup(base(s.kind)); err != nil {
			return err
		}
	}
	return nil
}

// indexed are the kinds that are looked up by their controller, each once.
func indexed() []client.Object {
	kinds := []client.Object{&corev1.Pod{}, &appsv1.StatefulSet{}, &appsv1.Deployment{}}
	seen := map[reflect.Type]bool{}
	for _, kind := range kinds {
		seen[reflect.TypeOf(kind)] = true
	}
	for _, kind := range slurmcluster.Prunes() {
		if !seen[reflect.TypeOf(kind)] {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func metricsOptions(o *options) metricsserver.Options {
	out := metricsserver.Options{BindAddress: o.metricsAddr, SecureServing: o.metricsSecure}
	if o.metricsSecure {
		out.FilterProvider = filters.WithAuthenticationAndAuthorization
	}
	if !o.enableHTTP2 {
		// HTTP/2 lets one client open streams faster than they can be reset (CVE-2023-44487).
		out.TLSOpts = []func(*tls.Config){func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} }}
	}
	return out
}

// watched is the cache's form of a list of namespaces; nil, which means all, when it is empty or has a *.
func watched(namespaces []string) map[string]cache.Config {
	if len(namespaces) == 0 {
		return nil
	}
	out := map[string]cache.Config{}
	for _, n := range namespaces {
		if n == "*" {
			return nil
		}
		out[n] = cache.Config{}
	}
	return out
}

// cached limits the cache to what Coxswain made. The pods of others, their Secrets and their workloads do not enter its
// memory.
func cached() map[client.Object]cache.ByObject {
	ours := cache.ByObject{Label: labels.SelectorFromSet(labels.Set{label.ManagedBy: label.Manager})}
	daemons, err := labels.NewRequirement(label.Name, selection.In, []string{
		slinkyv1beta1.NameSlurmctld, slinkyv1beta1.NameSlurmd,
	})
	utilruntime.Must(err)
	return map[client.Object]cache.ByObject{
		&corev1.ConfigMap{}:             ours,
		&corev1.Secret{}:                ours,
		&corev1.Service{}:               ours,
		&appsv1.StatefulSet{}:           ours,
		&appsv1.Deployment{}:            ours,
		&policyv1.PodDisruptionBudget{}: ours,
		&corev1.PersistentVolumeClaim{}: ours,
		&corev1.Pod{}:                   {Label: labels.NewSelector().Add(*daemons)},
	}
}
