// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nodeset reconciles NodeSets: it makes workers, marks those that are to go, and counts. The worker controller drains and deletes
// the marked ones, one pod at a time.
package nodeset

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/lru"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/controller/slinky/nodeset/nodesetplan"
	"github.com/coxswain-hpc/coxswain/internal/health/budget"
	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"
	"github.com/coxswain-hpc/coxswain/internal/reconcile/perkey"
	"github.com/coxswain-hpc/coxswain/internal/reconcile/reference"
	"github.com/coxswain-hpc/coxswain/internal/render"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmd"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
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
	caches   *slurmcache.Registry
	budgets  *budget.Budgets
	interest jobInterest
	absences absences
	names    takenNames
	pace     pace
	// calls are the reconciles that wait for Slurm. A Slurm that is silent keeps one of its cluster waiting, and not the NodeSets of all
	// clusters.
	calls    perkey.Gate[slurmcache.Key]
	renewals renewals
	// sealed are digests by what they were made of, see sssd, and configs are texts by where they are from, see sshdConfig.
	sealed, configs *lru.Cache
	// refusals are the refusals of claims, by UID. They may be lost.
	refusals *lru.Cache
}

// Index adds the index by which NodeSets are found by what they refer to.
func Index(ctx context.Context, mgr ctrl.Manager) error {
	return reference.AddIndex(ctx, mgr, &slinkyv1beta1.NodeSet{}, references)
}

// Setup registers the controller of NodeSets.
func Setup(mgr ctrl.Manager, base reconcile.Base, caches *slurmcache.Registry, budgets *budget.Budgets) error {
	r := &reconciler{
		Base: base, caches: caches, budgets: budgets,
		sealed: lru.New(maxDigests), configs: lru.New(maxConfigs), refusals: lru.New(maxClaimRefusals),
	}
	kind := &reconcile.Kind[*slinkyv1beta1.NodeSet, facts, *plan, observation]{
		Base:     &r.Base,
		New:      func() *slinkyv1beta1.NodeSet { return &slinkyv1beta1.NodeSet{} },
		Effect:   render.Effect,
		Gather:   r.gather,
		Decide:   decide,
		Drive:    r.drive,
		Report:   report,
		Finalize: r.finalize,
		Pause:    func(set types.NamespacedName) time.Duration { return r.pace.pause(set, base.Clock.Now()) },
	}
	return kind.Setup(mgr, reconcile.Watches{
		List:       &slinkyv1beta1.NodeSetList{},
		Owns:       []client.Object{&corev1.Pod{}, &appsv1.ControllerRevision{}},
		SharesWith: []client.Object{&corev1.Service{}, &policyv1.PodDisruptionBudget{}},
		RefersTo:   []client.Object{&slinkyv1beta1.Controller{}},
		Other:      r.watchNodes,
	})
}

func references(n *slinkyv1beta1.NodeSet) []string {
	out := []string{reference.To("Controller", n.Spec.ControllerRef.Name)}
	if !n.Spec.SSH.Enabled {
		return out
	}
	out = append(out, reference.To("Secret", n.SSHHostKeysName()))
	if ref := n.Spec.SSH.SshdConfigRef; ref != nil {
		out = append(out, reference.To("ConfigMap", ref.Name))
	}
	if ref := n.Spec.SSH.SssdConfRef; ref != nil && ref.Name != "" {
		out = append(out, reference.To("Secret", ref.Name))
	}
	return out
}

// maxUnavailable returns the number that the spec means, at least one: with none nothing would ever be updated.
func maxUnavailable(n *slinkyv1beta1.NodeSet, desired int) int {
	limit := n.MaxUnavailable()
	number, err := intstr.GetScaledValueFromIntOrPercent(&limit, desired, true)
	if err != nil {
		return 1
	}
	return max(1, number)
}

// plan is what is to be done for a NodeSet.
type plan struct {
	reconcile.Plan
	// history is what becomes of the ControllerRevisions, and revision the hash of the newest.
	history  nodesetplan.History
	revision string
	workers  nodesetplan.Plan
	// desired is how many workers there are to be.
	desired int32
	// steps are what the status shows of the plan, planned is how many there are, and texts are what pods show, by name.
	steps   []slinkyv1beta1.NodeSetStep
	planned int32
	texts   map[string]string
}

func decide(f facts) *plan {
	n := f.set
	p := &plan{revision: n.Status.NodeSetHash, desired: n.Status.Desired}
	if n.ScalingMode() == slinkyv1beta1.ScalingModeStatefulSet && !n.SavesPower() {
		p.desired = n.Replicas()
	}
	if len(f.problems) > 0 {
		p.Problems = f.problems
		p.workers = nodesetplan.Make(f.workers)
		return p
	}
	p.Add(kube.Shared(slurmd.Service(n)))
	if n.Spec.SSH.Enabled {
		p.Add(slurmd.SSHConfig(f.input))
		if !f.hostKeys { // looked for in the cache: a NodeSet is looked at with every change of a worker
			secret, used := slurmd.HostKeys(f.input)
			p.Ensure(used, secret)
		}
	}
	if n.DisruptionProtection() {
		// From a budget of somebody else, such as slurm-operator, unwanted fields cannot be taken away.
		p.Add(kube.Recreate(kube.Shared(slurmd.DisruptionBudget(n))))
	} else {
		p.Release = append(p.Release, slurmd.DisruptionBudget(n))
	}
	slurmd.Ignore(n, &p.Output)
	p.history = history(f)
	p.revision = p.history.Hash
	p.workers = nodesetplan.Make(f.planned(p.revision))
	p.desired = int32(p.workers.Desired) //nolint:gosec // a number of pods
	tell(f, p)
	return p
}

// planned returns what the plan for the workers is made from, once their revision is known.
func (f facts) planned(revision string) nodesetplan.Input {
	in := f.workers
	in.Revision = revision
	return in
}

// bornProtected reports whether workers are made with the protect label: a job may start as soon as slurmd has registered. Without a
// RestApi nothing would ever take the label off.
func (r *reconciler) bornProtected(n *slinkyv1beta1.NodeSet) bool {
	_, ok := r.cacheOf(n)
	return ok && workerpod.ProtectionOf(n) == workerpod.UntilDrained
}
