// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package loginset reconciles LoginSets: pods with sshd and sackd.
package loginset

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/reconcile/reference"
	"github.com/coxswain-hpc/coxswain/internal/render/login"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"
	"github.com/coxswain-hpc/coxswain/internal/render"
	"github.com/coxswain-hpc/coxswain/internal/render/label"
	"github.com/coxswain-hpc/coxswain/internal/render/sshd"
)

// +kubebuilder:rbac:groups=slinky.slurm.net,resources=loginsets;controllers,verbs=get;list;watch
// +kubebuilder:rbac:groups=slinky.slurm.net,resources=loginsets/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=services;configmaps,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups=discovery.k8s.io,resources=endpointslices,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=apps,resources=deployments;statefulsets,verbs=get;list;watch;create;patch;delete

type reconciler struct{ reconcile.Base }

// Index adds the index by which LoginSets are found by what they refer to.
func Index(ctx context.Context, mgr ctrl.Manager) error {
	return reference.AddIndex(ctx, mgr, &slinkyv1beta1.LoginSet{}, references)
}

// Setup registers the controller of LoginSets.
func Setup(mgr ctrl.Manager, base reconcile.Base) error {
	r := &reconciler{Base: base}
	kind := &reconcile.Kind[*slinkyv1beta1.LoginSet, facts, *reconcile.Plan, observation]{
		Base:    &r.Base,
		New:     func() *slinkyv1beta1.LoginSet { return &slinkyv1beta1.LoginSet{} },
		Effect:  render.Effect,
		Gather:  r.gather,
		Decide:  decide,
		Observe: r.observe,
		Report:  report,
		Prunes:  Prunes(),
	}
	list := &slinkyv1beta1.LoginSetList{}
	return kind.Setup(mgr, reconcile.Watches{
		List:     list,
		Owns:     Prunes(),
		RefersTo: []client.Object{&slinkyv1beta1.Controller{}},
		PodsOf:   slinkyv1beta1.NameLogin,
		BySecret: reference.ThroughControllers(r.Client, list, "Secret"),
	})
}

// Prunes returns the kinds of objects that are deleted when they are no longer rendered. Each needs the index of
// kube.SetupIndexes.
func Prunes() []client.Object {
	return []client.Object{&corev1.ConfigMap{}, &corev1.Service{}, &discoveryv1.EndpointSlice{}, &appsv1.Deployment{}, &appsv1.StatefulSet{}}
}

func references(l *slinkyv1beta1.LoginSet) []string {
	refs := []string{
		reference.To("Controller", l.Spec.ControllerRef.Name),
		reference.To("Secret", l.SSHHostKeysName()),
	}
	if l.Spec.SshdConfigRef != nil {
		refs = append(refs, reference.To("ConfigMap", l.Spec.SshdConfigRef.Name))
	}
	if l.Spec.SssdConfRef != nil {
		refs = append(refs, reference.To("Secret", l.Spec.SssdConfRef.Name))
	}
	return append(refs, reference.MungeReferences(l.Spec.Munge)...)
}

// facts are what is known about a LoginSet.
type facts struct {
	login.Input
	// problems are what is wrong with what it refers to.
	problems problem.List
	// ready reports whether the wanted workload serves, so that the workload of the other kind is not needed any more.
	ready bool
}

func (r *reconciler) gather(ctx context.Context, l *slinkyv1beta1.LoginSet) (facts, error) {
	f := facts{Input: login.Input{LoginSet: l, Images: r.Images, ClusterDomain: r.ClusterDomain}}
	slurmKey, controllerErr := r.controller(ctx, l, &f.Input)
	var err error
	f.problems, err = problem.FromError(errors.Join(controllerErr, r.hostKeys(ctx, l, &f.Input), r.sshdConfig(ctx, l, &f.Input),
		r.sssd(ctx, l, slurmKey, &f.Input), r.mungeKey(ctx, l, &f.Input)))
	if err != nil {
		return f, err
	}
	if err := r.hosts(ctx, l, &f.Input); err != nil {
		return f, err
	}
	wanted, _ := workloads(l)
	part, _, err := r.ObserveWorkload(ctx, l.Namespace, l.Key().Name, wanted, "login", l.Replicas())
	f.ready = part.Ready
	return f, err
}

func decide(f facts) *reconcile.Plan {
	plan := &reconcile.Plan{}
	if len(f.problems) > 0 {
		plan.Problems = f.problems
	} else {
		plan.Output = login.Render(f.Input)
	}
	// They are generated once: when they changed, every user's ssh client would warn of an attack.
	plan.Ensure(true, render.Secret{Name: f.LoginSet.SSHHostKeysName(), Content: render.SSHHostKeys})
	if !f.ready { // users can log in all the time while the workloads are exchanged
		_, other := workloads(f.LoginSet)
		other.SetName(f.LoginSet.Key().Name)
		plan.Keep = []client.Object{other}
	}
	return plan
}

// hosts reads the pods of a LoginSet that run, and the names that its pods have in DNS.
func (r *reconciler) hosts(ctx context.Context, l *slinkyv1beta1.LoginSet, in *login.Input) error {
	var list corev1.PodList
	if err := r.Client.List(ctx, &list, client.InNamespace(l.Namespace), client.MatchingLabels(login.Labels(l).Selector())); err != nil {
		return fmt.Errorf("listing the pods of LoginSet %s/%s: %w", l.Namespace, l.Name, err)
	}
	in.Pods = slices.DeleteFunc(list.Items, func(p corev1.Pod) bool {
		return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	})
	var hosts discoveryv1.EndpointSlice
	key := types.NamespacedName{Namespace: l.Namespace, Name: l.HostsName()}
	switch err := r.Client.Get(ctx, key, &hosts); {
	case err == nil:
		in.Hosts = &hosts
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("reading EndpointSlice %s: %w", key, err)
	}
	return nil
}

// workloads returns empty objects of the kind that runs the pods and of the other kind.
func workloads(l *slinkyv1beta1.LoginSet) (wanted, other client.Object) {
	if l.Workload() == slinkyv1beta1.LoginWorkloadStatefulSet {
		return &appsv1.StatefulSet{}, &appsv1.Deployment{}
	}
	return &appsv1.Deployment{}, &appsv1.StatefulSet{}
}

// controller reads the Controller and returns its auth/slurm key.
func (r *reconciler) controller(ctx context.Context, l *slinkyv1beta1.LoginSet, in *login.Input) ([]byte, error) {
	c, err := r.Controller(ctx, l.Namespace, l.Spec.ControllerRef)
	if err != nil {
		return nil, err
	}
	in.Controller = c
	var key []byte
	key, in.SlurmKeyDigest, err = r.SlurmKey(ctx, l.Namespace, *c.AuthSlurmRef(), "spec.controllerRef")
	return key, err
}

// hostKeys reads the ssh host keys.
func (r *reconciler) hostKeys(ctx context.Context, l *slinkyv1beta1.LoginSet, in *login.Input) error {
	name := l.SSHHostKeysName()
	files := sshd.HostKeyFiles()
	secret, err := r.Secret(ctx, l.Namespace, corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: files[0]}, "")
	if err != nil {
		return err
	}
	for _, file := range files[1:] {
		if len(secret.Data[file]) == 0 {
			return problem.Waitingf("", slinkyv1beta1.ReasonKeyMissing,
				"Secret %s has no key %s; add it, or delete the Secret and all host keys are generated again", name, file)
		}
	}
	in.HostKeysDigest = label.Digest(secret.Data)
	return nil
}

// mungeKey reads the munge key.
func (r *reconciler) mungeKey(ctx context.Context, l *slinkyv1beta1.LoginSet, in *login.Input) (err error) {
	in.MungeKeyDigest, err = r.MungeDigest(ctx, l.Namespace, l.Spec.Munge)
	return err
}

// sshdConfig reads the user's own sshd_config.
func (r *reconciler) sshdConfig(ctx context.Context, l *slinkyv1beta1.LoginSet, in *login.Input) (err error) {
	if ref := l.Spec.SshdConfigRef; ref != nil {
		in.SshdConfig, err = r.ConfigMapValue(ctx, l.Namespace, *ref, "spec.sshdConfigRef")
	}
	return err
}

// sssd reads sssd.conf. It may hold a password, so its digest is sealed.
func (r *reconciler) sssd(ctx context.Context, l *slinkyv1beta1.LoginSet, seal []byte, in *login.Input) error {
	if l.Spec.SssdConfRef == nil {
		return nil
	}
	value, err := r.SecretValue(ctx, l.Namespace, *l.Spec.SssdConfRef, "spec.sssdConfRef")
	in.SssdDigest = label.Seal(seal, map[string][]byte{l.Spec.SssdConfRef.Key: value})
	return err
}

// observation is what runs of a LoginSet.
type observation struct {
	part     kube.Part
	workload reconcile.Workload
}

func (r *reconciler) observe(ctx context.Context, l *slinkyv1beta1.LoginSet, _ facts, _ *reconcile.Plan, seen *observation) (err error) {
	wanted, _ := workloads(l)
	if seen.part, seen.workload, err = r.ObserveWorkload(ctx, l.Namespace, l.Key().Name, wanted, "login", l.Replicas()); err != nil {
		return err
	}
	return r.AppendLastWords(ctx, &seen.part, l.Namespace, login.Labels(l).Selector(), slinkyv1beta1.NameLogin)
}

func report(l *slinkyv1beta1.LoginSet, o reconcile.Outcome[facts, *reconcile.Plan, observation]) reconcile.Report {
	l.Status.ObservedGeneration = l.Generation
	l.Status.Replicas, l.Status.ReadyReplicas = o.Seen.workload.Replicas, o.Seen.workload.Ready
	l.Status.Selector = metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: login.Labels(l).Selector()})
	return reconcile.Report{Parts: []kube.Part{o.Seen.part}}
}
