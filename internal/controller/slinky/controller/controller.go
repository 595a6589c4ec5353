// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controller reconciles Controllers: slurmctld and its configuration.
package controller

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/coxswain-hpc/coxswain/internal/reconcile/reference"
	"github.com/coxswain-hpc/coxswain/internal/render"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmctld"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"
)

// +kubebuilder:rbac:groups=slinky.slurm.net,resources=controllers,verbs=get;list;watch
// +kubebuilder:rbac:groups=slinky.slurm.net,resources=controllers/status,verbs=patch
// +kubebuilder:rbac:groups=slinky.slurm.net,resources=accountings;nodesets,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=configmaps;services,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=apps,resources=statefulsets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

type reconciler struct {
	reconcile.Base
	caches *slurmcache.Registry
	// definitions has the CRD of ServiceMonitors.
	definitions kube.Definitions
	// configs are the files of the ConfigMaps as they were last, by the UIDs of their Controllers, see remember.
	configs *lru.Cache
}

// Index adds the index by which Controllers are found by what they refer to.
func Index(ctx context.Context, mgr ctrl.Manager) error {
	return reference.AddIndex(ctx, mgr, &slinkyv1beta1.Controller{}, references)
}

// Setup registers the controller of Controllers. definitions has the CRD of ServiceMonitors, if there is one.
func Setup(mgr ctrl.Manager, base reconcile.Base, caches *slurmcache.Registry, definitions kube.Definitions) error {
	r := &reconciler{Base: base, caches: caches, definitions: definitions, configs: lru.New(maxRemembered)}
	kind := &reconcile.Kind[*slinkyv1beta1.Controller, facts, *plan, observation]{
		Base:    &r.Base,
		New:     func() *slinkyv1beta1.Controller { return &slinkyv1beta1.Controller{} },
		Effect:  render.Effect,
		Gather:  r.gather,
		Decide:  decide,
		Drive:   r.drive,
		Observe: r.observe,
		Report:  report,
	}
	return kind.Setup(mgr, reconcile.Watches{
		List:     &slinkyv1beta1.ControllerList{},
		Owns:     made(),
		RefersTo: []client.Object{&slinkyv1beta1.Accounting{}},
		PodsOf:   slinkyv1beta1.NameSlurmctld,
		Claims:   true,
		Other: func(b *builder.Builder) {
			// The specs of NodeSets, whether they exist, and how many workers they are to have decide what is rendered.
			b.Watches(&slinkyv1beta1.NodeSet{}, handler.EnqueueRequestsFromMapFunc(reference.ControllerOf), builder.WithPredicates(reference.TermsChange()))
			b.WatchesRawSource(reconcile.SlurmChanges(r.caches, wakeController))
			r.watchDefinition(b)
		},
	})
}

// made returns the kinds of objects that are rendered, and deleted when they no longer are.
func made() []client.Object {
	return []client.Object{&corev1.ConfigMap{}, &corev1.Service{}, &appsv1.StatefulSet{}}
}

// references returns what a Controller depends on. NodeSets refer to it and not the other way round.
func references(c *slinkyv1beta1.Controller) []string {
	refs := []string{reference.To("Secret", c.AuthSlurmRef().Name), reference.To("Secret", c.AuthJwtRef().Name)}
	if c.Spec.AccountingRef != nil {
		refs = append(refs, reference.To("Accounting", c.Spec.AccountingRef.Name))
	}
	if c.Spec.JwksKeyRef != nil {
		refs = append(refs, reference.To("ConfigMap", c.Spec.JwksKeyRef.Name))
	}
	if c.Replicas() > 1 {
		refs = append(refs, reference.To("PersistentVolumeClaim", c.ExistingClaim()))
	}
	for _, name := range slurmctld.ReferencedConfigMaps(c) {
		refs = append(refs, reference.To("ConfigMap", name))
	}
	return slices.Concat(refs, reference.MungeReferences(c.Spec.Munge), reference.SSSDReferences(c.Spec.SSSD))
}

// sameKey refuses an Accounting with another auth/slurm key: slurmctld and slurmdbd would not trust each other. Two
// Secrets with the same key are fine.
func (r *reconciler) sameKey(ctx context.Context, c *slinkyv1beta1.Controller, a *slinkyv1beta1.Accounting) error {
	ours, theirs := c.AuthSlurmRef(), a.AuthSlurmRef()
	if ours.Name == theirs.Name && ours.Key == theirs.Key || a.Spec.External && a.Spec.SlurmKeyRef == nil {
		return nil
	}
	const path = "spec.slurmKeyRef"
	our, err := r.SecretValue(ctx, c.Namespace, *ours, path)
	if err != nil {
		return err
	}
	their, err := r.SecretValue(ctx, a.Namespace, *theirs, path)
	if err != nil {
		return err
	}
	if bytes.Equal(our, their) {
		return nil
	}
	return problem.Errorf(path, slinkyv1beta1.ReasonKeyMismatch,
		"key %s in Secret %s differs from that of Accounting %s, key %s in Secret %s; slurmctld and slurmdbd need the same key",
		ours.Key, ours.Name, a.Name, theirs.Key, theirs.Name)
}

func (r *reconciler) accounting(ctx context.Context, c *slinkyv1beta1.Controller, in *slurmctld.Input) error {
	ref := c.Spec.AccountingRef
	if ref == nil {
		return nil
	}
	if err := ref.InNamespace(c.Namespace); err != nil {
		return problem.Errorf("spec.accountingRef.namespace", slinkyv1beta1.ReasonReferenceRefused, "%v", err)
	}
	a := &slinkyv1beta1.Accounting{}
	if err := r.Client.Get(ctx, types.NamespacedName{Namespace: c.Namespace, Name: ref.Name}, a); err != nil {
		if apierrors.IsNotFound(err) {
			return problem.Waitingf("spec.accountingRef", slinkyv1beta1.ReasonReferenceNotFound, "Accounting %s does not exist; create it or remove the reference", ref.Name)
		}
		return fmt.Errorf("reading Accounting %s/%s: %w", c.Namespace, ref.Name, err)
	}
	in.Accounting = a
	return nil
}

func (r *reconciler) files(ctx context.Context, c *slinkyv1beta1.Controller, in *slurmctld.Input) error {
	var errs []error
	read := func(refs []slinkyv1beta1.ObjectReference, path string, to *[]slurmctld.File) {
		for i, ref := range refs {
			at := fmt.Sprintf("spec.%s[%d]", path, i)
			if err := ref.InNamespace(c.Namespace); err != nil {
				errs = append(errs, problem.Errorf(at+".namespace", slinkyv1beta1.ReasonReferenceRefused, "%v", err))
				continue
			}
			content, err := r.ConfigMap(ctx, c.Namespace, ref.Name, at)
			errs = append(errs, err)
			for name, text := range content {
				*to = append(*to, slurmctld.File{ConfigMap: ref.Name, Name: name, Content: text})
			}
		}
	}
	read(c.Spec.ConfigFileRefs, "configFileRefs", &in.Files.Config)
	read(c.Spec.PrologScriptRefs, "prologScriptRefs", &in.Files.Prolog)
	read(c.Spec.EpilogScriptRefs, "epilogScriptRefs", &in.Files.Epilog)
	read(c.Spec.PrologSlurmctldScriptRefs, "prologSlurmctldScriptRefs", &in.Files.PrologSlurmctld)
	read(c.Spec.EpilogSlurmctldScriptRefs, "epilogSlurmctldScriptRefs", &in.Files.EpilogSlurmctld)
	return errors.Join(errs...)
}

func (r *reconciler) nodeSets(ctx context.Context, c *slinkyv1beta1.Controller, in *slurmctld.Input) error {
	var list slinkyv1beta1.NodeSetList
	err := r.Client.List(ctx, &list, client.InNamespace(c.Namespace),
		client.MatchingFields{reference.Index: reference.To("Controller", c.Name)})
	if err != nil {
		return fmt.Errorf("listing the NodeSets of %s/%s: %w", c.Namespace, c.Name, err)
	}
	for _, set := range list.Items {
		// A NodeSet that waits for its last jobs keeps its place in slurm.conf: slurmctld must not lose a partition with jobs.
		there := set.DeletionTimestamp == nil || slices.Contains(set.Finalizers, slinkyv1beta1.FinalizerWorkers)
		if there && set.Spec.ControllerRef.InNamespace(c.Namespace) == nil {
			in.NodeSets = append(in.NodeSets, set)
		}
	}
	return nil
}
