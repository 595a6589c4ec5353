// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package loginset reconciles LoginSets: pods with sshd and sackd.
package loginset

import (
	"context"
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"
	"github.com/coxswain-hpc/coxswain/internal/render/label"
	render "github.com/coxswain-hpc/coxswain/internal/render/loginset"
)

// +kubebuilder:rbac:groups=slinky.slurm.net,resources=loginsets;controllers,verbs=get;list;watch
// +kubebuilder:rbac:groups=slinky.slurm.net,resources=loginsets/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=services;configmaps,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=apps,resources=deployments;statefulsets,verbs=get;list;watch;create;patch;delete

type reconciler struct{ reconcile.Base }

// Index adds the index by which LoginSets are found by what they refer to.
func Index(ctx context.Context, mgr ctrl.Manager) error {
	return reconcile.IndexReferences(ctx, mgr, &slinkyv1beta1.LoginSet{}, references)
}

// Setup registers the controller of LoginSets.
func Setup(mgr ctrl.Manager, base reconcile.Base) error {
	r := &reconciler{Base: base}
	generic := &reconcile.Reconciler[*slinkyv1beta1.LoginSet]{
		Base:    base,
		New:     func() *slinkyv1beta1.LoginSet { return &slinkyv1beta1.LoginSet{} },
		Decide:  r.decide,
		Observe: r.observe,
		Prunes:  made(),
	}
	return generic.Setup(mgr, &slinkyv1beta1.LoginSetList{}, reconcile.Watches{
		Owns:             made(),
		Components:       []client.Object{&slinkyv1beta1.Controller{}},
		KeysOfController: true,
	})
}

// made are the kinds of objects that are rendered.
func made() []client.Object {
	return []client.Object{&corev1.ConfigMap{}, &corev1.Service{}, &appsv1.Deployment{}, &appsv1.StatefulSet{}}
}

func references(l *slinkyv1beta1.LoginSet) []string {
	refs := []string{
		reconcile.Ref("Controller", l.Spec.ControllerRef.Name),
		reconcile.Ref("Secret", l.SSHHostKeysName()),
	}
	if l.Spec.SssdConfRef != nil {
		refs = append(refs, reconcile.Ref("Secret", l.Spec.SssdConfRef.Name))
	}
	return refs
}

func (r *reconciler) decide(ctx context.Context, l *slinkyv1beta1.LoginSet) (reconcile.Plan, error) {
	l.Status.ObservedGeneration = l.Generation
	in := render.Input{LoginSet: l, Images: r.Images, ClusterDomain: r.ClusterDomain}
	slurmKey, controllerErr := r.controller(ctx, l, &in)
	problems, err := problem.FromError(errors.Join(controllerErr, r.hostKeys(ctx, l, &in), r.sssd(ctx, l, slurmKey, &in)))
	if err != nil || len(problems) > 0 {
		return reconcile.Plan{Output: reconcile.Failed(problems)}, err
	}
	plan := reconcile.Plan{Output: render.Render(in)}
	plan.Keep, err = r.predecessor(ctx, l)
	return plan, err
}

// predecessor returns the workload of the other kind for as long as the wanted one is not ready: users can log in all the
// time while they are exchanged.
func (r *reconciler) predecessor(ctx context.Context, l *slinkyv1beta1.LoginSet) ([]client.Object, error) {
	wanted, other := workloads(l)
	part, _, err := r.ObserveWorkload(ctx, l.Namespace, l.Key().Name, wanted, "login")
	if err != nil || part.Ready {
		return nil, err
	}
	other.SetName(l.Key().Name)
	return []client.Object{other}, nil
}

// workloads returns empty objects of the kind that runs the pods and of the one that does not.
func workloads(l *slinkyv1beta1.LoginSet) (wanted, other client.Object) {
	if l.Workload() == slinkyv1beta1.LoginWorkloadStatefulSet {
		return &appsv1.StatefulSet{}, &appsv1.Deployment{}
	}
	return &appsv1.Deployment{}, &appsv1.StatefulSet{}
}

// controller reads the Controller and returns its auth/slurm key.
func (r *reconciler) controller(ctx context.Context, l *slinkyv1beta1.LoginSet, in *render.Input) ([]byte, error) {
	c, err := r.Controller(ctx, l.Namespace, l.Spec.ControllerRef)
	if err != nil {
		return nil, err
	}
	in.Controller = c
	var key []byte
	key, in.SlurmKeyDigest, err = r.SlurmKey(ctx, l.Namespace, *c.AuthSlurmRef(), "spec.controllerRef")
	return key, err
}

// hostKeys generates the ssh host keys once: when they changed, every user's ssh client would warn of an attack.
func (r *reconciler) hostKeys(ctx context.Context, l *slinkyv1beta1.LoginSet, in *render.Input) error {
	name := l.SSHHostKeysName()
	if err := r.EnsureSecret(ctx, r.Client.Scheme(), l, name, hostKeys); err != nil {
		return err
	}
	files := render.HostKeyFiles()
	// It may go between the two looks, of which an event is on its way.
	secret, err := r.Secret(ctx, l.Namespace, corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: files[0]}, "")
	if err != nil {
		return err
	}
	for _, file := range files[1:] {
		if len(secret.Data[file]) == 0 {
			return problem.Waitingf("", slinkyv1beta1.ReasonKeyMissing,
				"Secret %s has no key %s; add it, or delete the Secret and all host keys are generated anew", name, file)
		}
	}
	in.HostKeysDigest = label.Digest(secret.Data)
	return nil
}

// sssd reads sssd.conf. It may hold a password, so its digest is sealed.
func (r *reconciler) sssd(ctx context.Context, l *slinkyv1beta1.LoginSet, seal []byte, in *render.Input) error {
	if l.Spec.SssdConfRef == nil {
		return nil
	}
	value, err := r.SecretValue(ctx, l.Namespace, *l.Spec.SssdConfRef, "spec.sssdConfRef")
	in.SssdDigest = label.Seal(seal, map[string][]byte{l.Spec.SssdConfRef.Key: value})
	return err
}

func (r *reconciler) observe(ctx context.Context, l *slinkyv1beta1.LoginSet, plan *reconcile.Plan) error {
	wanted, _ := workloads(l)
	part, workload, err := r.ObserveWorkload(ctx, l.Namespace, l.Key().Name, wanted, "login")
	if err != nil {
		return err
	}
	l.Status.Replicas, l.Status.ReadyReplicas = workload.Replicas, workload.Ready
	l.Status.Selector = metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: render.Labels(l).Selector()})
	plan.Parts = append(plan.Parts, part)
	return nil
}
