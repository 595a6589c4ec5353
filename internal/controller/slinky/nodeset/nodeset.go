// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nodeset reconciles NodeSets: it makes workers, marks those that are to go, and counts. Draining and deleting
// the marked ones is the business of the worker controller, one pod at a time.
package nodeset

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/lru"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/link"
	plans "github.com/coxswain-hpc/coxswain/internal/nodeset"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"
	"github.com/coxswain-hpc/coxswain/internal/render"
	renderworker "github.com/coxswain-hpc/coxswain/internal/render/worker"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// +kubebuilder:rbac:groups=slinky.slurm.net,resources=nodesets;controllers,verbs=get;list;watch
// +kubebuilder:rbac:groups=slinky.slurm.net,resources=nodesets,verbs=patch
// +kubebuilder:rbac:groups=slinky.slurm.net,resources=nodesets/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=services,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups=apps,resources=controllerrevisions,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=get;list;watch;create;patch;delete

type reconciler struct {
	reconcile.Base
	links    *link.Registry
	asking   asking
	absences absences
	pace     pace
	talks    talks
	renewals renewals
	// sealed are digests by what they were made of, see sssd.
	sealed *lru.Cache
}

// Index adds the index by which NodeSets are found by what they refer to.
func Index(ctx context.Context, mgr ctrl.Manager) error {
	return reconcile.IndexReferences(ctx, mgr, &slinkyv1beta1.NodeSet{}, references)
}

// Setup registers the controller of NodeSets.
func Setup(mgr ctrl.Manager, base reconcile.Base, links *link.Registry) error {
	r := &reconciler{Base: base, links: links, sealed: lru.New(digestsRemembered)}
	generic := &reconcile.Reconciler[*slinkyv1beta1.NodeSet]{
		Base:   base,
		New:    func() *slinkyv1beta1.NodeSet { return &slinkyv1beta1.NodeSet{} },
		Decide: r.decide,
		Observe: func(ctx context.Context, n *slinkyv1beta1.NodeSet, plan *reconcile.Plan) error {
			return r.observe(ctx, n, nil, plan)
		},
		Finalize: r.finalize,
		Pause:    func(set types.NamespacedName) time.Duration { return r.pace.pause(set, base.Clock.Now()) },
		Prunes:   []client.Object{&corev1.ConfigMap{}},
	}
	return generic.Setup(mgr, &slinkyv1beta1.NodeSetList{}, reconcile.Watches{
		Other:      r.watchNodes,
		Owns:       []client.Object{&corev1.Pod{}, &appsv1.ControllerRevision{}},
		SharesWith: []client.Object{&corev1.Service{}, &policyv1.PodDisruptionBudget{}},
		Components: []client.Object{&slinkyv1beta1.Controller{}},
	})
}

func references(n *slinkyv1beta1.NodeSet) []string {
	out := []string{reconcile.Ref("Controller", n.Spec.ControllerRef.Name)}
	if ref := n.Spec.SSH.SssdConfRef; n.Spec.SSH.Enabled && ref != nil && ref.Name != "" {
		out = append(out, reconcile.Ref("Secret", ref.Name))
	}
	return out
}

func (r *reconciler) decide(ctx context.Context, n *slinkyv1beta1.NodeSet) (reconcile.Plan, error) {
	n.Status.ObservedGeneration = n.Generation
	in, err := r.input(ctx, n)
	if err == nil {
		err = renderworker.Check(in) // before any pod is made
	}
	problems, err := problem.FromError(err)
	if err != nil || len(problems) > 0 {
		return reconcile.Plan{Output: reconcile.Failed(problems)}, err
	}
	var out render.Output
	out.Add(kube.Shared(renderworker.Service(n)))
	if n.Spec.SSH.Enabled {
		out.Add(renderworker.SSHConfig(n))
	}
	if n.DisruptionProtection() {
		// Of one of somebody else's, as of slurm-operator, what is not wanted cannot be taken away.
		out.Add(kube.Recreate(kube.Shared(renderworker.DisruptionBudget(n))))
	} else if err := r.Applier.Release(ctx, n, renderworker.DisruptionBudget(n)); err != nil {
		return reconcile.Plan{}, err
	}
	renderworker.Ignore(n, &out)
	return reconcile.Plan{Output: out, Observe: func(ctx context.Context, plan *reconcile.Plan) error { return r.observe(ctx, n, &in, plan) }}, nil
}

func (r *reconciler) input(ctx context.Context, n *slinkyv1beta1.NodeSet) (renderworker.Input, error) {
	c, err := r.Controller(ctx, n.Namespace, n.Spec.ControllerRef)
	if err != nil {
		return renderworker.Input{}, err
	}
	in := renderworker.Input{NodeSet: n, Controller: c, ClusterDomain: r.ClusterDomain, Images: r.Images, Protected: r.bornProtected(n)}
	in.SssdDigest, err = r.sssd(ctx, n, c)
	return in, err
}

// observe carries the plan for the pods out and counts them. Without input, the decision's, it only counts.
func (r *reconciler) observe(ctx context.Context, n *slinkyv1beta1.NodeSet, input *renderworker.Input, out *reconcile.Plan) error {
	n.Status.Selector = metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: renderworker.Labels(n).Selector()})
	if n.ScalingMode() == slinkyv1beta1.ScalingModeStatefulSet {
		n.Status.Desired = n.Replicas()
	}
	var list corev1.PodList
	// Copies of thousands of pods, made with every change of one, would be most of what the operator does. They are only read.
	err := r.Client.List(ctx, &list, client.InNamespace(n.Namespace), client.MatchingFields{kube.OwnerIndex: string(n.UID)},
		client.UnsafeDisableDeepCopy)
	if err != nil {
		return fmt.Errorf("listing the pods of NodeSet %s/%s: %w", n.Namespace, n.Name, err)
	}
	defer func() { r.pace.looked(client.ObjectKeyFromObject(n), len(list.Items), r.Clock.Now()) }()
	if input == nil || len(out.Problems) > 0 {
		out.Parts = append(out.Parts, count(n, list.Items, n.Status.NodeSetHash, r.Clock.Now()))
		return r.remember(ctx, n, list.Items, out)
	}
	in := *input
	if err := r.stay(ctx, n); err != nil { // before there is a worker
		return err
	}
	revision, err := r.revise(ctx, in, list.Items)
	if err != nil {
		problems, err := problem.FromError(err)
		out.Problems = append(out.Problems, problems...)
		return err
	}
	// In one order, so that messages and the order of deeds do not depend on the cache.
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int {
		return cmp.Or(workerpod.Ordinal(&a)-workerpod.Ordinal(&b), cmp.Compare(a.Name, b.Name))
	})
	facts, registered, problems, err := r.gather(ctx, in, revision, list.Items)
	if err != nil {
		return err
	}
	out.Problems = append(out.Problems, problems...)
	plan := plans.Make(facts)
	r.askJobs(n, list.Items, plan, facts.Now)
	if l, ok := r.linkOf(n); ok && plan.Relist {
		l.Relist()
	}
	n.Status.Desired = int32(plan.Desired) //nolint:gosec // a number of pods
	n.Status.OrdinalToNode = plans.Pinned(facts.Pins)
	texts := tell(n, list.Items, facts, plan)
	var renewed, again, tidied time.Time
	if !workerpod.DryRun(n) {
		var reserveErr, tidyErr error
		var renewErr error
		now := plan // what waits is still expected
		renewed, renewErr = r.renew(ctx, in, &now)
		err = errors.Join(renewErr, r.execute(ctx, in, revision, list.Items, facts, now, texts))
		// What asks Slurm comes last: it may be silent, and nothing else waits for it.
		again, reserveErr = r.reserve(ctx, n, registered, plan.Desired, out)
		tidied, tidyErr = r.tidy(ctx, n, list.Items, facts, plan)
		err = errors.Join(err, tidyErr, reserveErr)
	}
	problems, err = problem.FromError(err)
	out.Problems = append(append(out.Problems, problems...), lost(n, facts, plan, out)...)
	out.Again = plans.Sooner(plans.Sooner(plan.Again, renewed), plans.Sooner(again, tidied))
	out.Parts = append(out.Parts, count(n, list.Items, revision, r.Clock.Now()))
	return err
}

// maxUnavailable is the number that the spec means, at least one: with none nothing would ever be updated.
func maxUnavailable(n *slinkyv1beta1.NodeSet, desired int) int {
	limit := n.MaxUnavailable()
	number, err := intstr.GetScaledValueFromIntOrPercent(&limit, desired, true)
	if err != nil {
		return 1
	}
	return max(1, number)
}
