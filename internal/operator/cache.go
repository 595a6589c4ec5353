// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"fmt"
	"reflect"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/controller/nebius/nodeconfigurator"
	"github.com/coxswain-hpc/coxswain/internal/controller/nebius/slurmcluster"
	"github.com/coxswain-hpc/coxswain/internal/controller/slinky/accounting"
	"github.com/coxswain-hpc/coxswain/internal/controller/slinky/loginset"
	"github.com/coxswain-hpc/coxswain/internal/controller/slinky/restapi"
	"github.com/coxswain-hpc/coxswain/internal/render/label"
)

// watched returns the cache's form of a list of namespaces; nil, which means all, when it is empty or has a *.
func watched(namespaces []string) map[string]cache.Config {
	if len(namespaces) == 0 || slices.Contains(namespaces, "*") {
		return nil
	}
	out := map[string]cache.Config{}
	for _, n := range namespaces {
		out[n] = cache.Config{}
	}
	return out
}

// cached limits the cache to what Coxswain made. The pods of others, their Secrets and their workloads do not enter its
// memory. Pods of rebooters do where degraded nodes are rebooted.
func cached(rebooters bool) map[client.Object]cache.ByObject {
	ours := cache.ByObject{Label: labels.SelectorFromSet(labels.Set{label.ManagedBy: label.Manager})}
	names := []string{slinkyv1beta1.NameSlurmctld, slinkyv1beta1.NameSlurmd, slinkyv1beta1.NameSlurmdbd, slinkyv1beta1.NameLogin}
	if rebooters {
		names = append(names, nebiusv1alpha1.NameNodeConfigurator)
	}
	daemons, err := labels.NewRequirement(label.Name, selection.In, names)
	utilruntime.Must(err)
	return map[client.Object]cache.ByObject{
		&corev1.ConfigMap{}:             ours,
		&corev1.Secret{}:                ours,
		&corev1.Service{}:               ours,
		&appsv1.StatefulSet{}:           ours,
		&appsv1.Deployment{}:            ours,
		&appsv1.DaemonSet{}:             ours,
		&appsv1.ControllerRevision{}:    ours,
		&policyv1.PodDisruptionBudget{}: ours,
		&corev1.PersistentVolumeClaim{}: ours,
		&networkingv1.NetworkPolicy{}:   ours,
		&discoveryv1.EndpointSlice{}:    ours,
		&batchv1.Job{}:                  ours,
		&batchv1.CronJob{}:              ours,
		&corev1.ServiceAccount{}:        ours,
		&rbacv1.Role{}:                  ours,
		&rbacv1.RoleBinding{}:           ours,
		&corev1.Pod{}:                   {Label: labels.NewSelector().Add(*daemons), Transform: slimPod},
		&corev1.Node{}:                  {Transform: slimNode},
	}
}

// newReferences makes the cache of the metadata of all Secrets and ConfigMaps, by which changes of users' own are noticed.
func newReferences(config *rest.Config, mgr ctrl.Manager, namespaces []string) (cache.Cache, error) {
	references, err := cache.New(config, cache.Options{
		Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient(), DefaultNamespaces: watched(namespaces),
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

// normalize returns the form in which the cache keeps each object: managed fields are for the API server, and an object of a program that
// writes empty fields becomes the one that was meant.
func normalize(o any) (any, error) {
	if obj, ok := o.(interface{ DropEmpty() }); ok {
		obj.DropEmpty()
	}
	return cache.TransformStripManagedFields()(o)
}

// owned returns the kinds that are looked up by their controller, each once.
func owned() []client.Object {
	kinds := []client.Object{&corev1.Pod{}, &appsv1.StatefulSet{}, &appsv1.Deployment{}}
	for _, kind := range slices.Concat(slurmcluster.Prunes(), accounting.Prunes(), loginset.Prunes(), nodeconfigurator.Prunes(), restapi.Prunes()) {
		same := func(have client.Object) bool { return reflect.TypeOf(have) == reflect.TypeOf(kind) }
		if !slices.ContainsFunc(kinds, same) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}
