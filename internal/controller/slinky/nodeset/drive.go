// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/controller/slinky/nodeset/nodesetplan"
	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"
	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// observation is what carrying out a plan has shown.
type observation struct {
	// driven reports whether the workers were looked after.
	driven bool
	// reservation is the reservation for the maintenance of the NodeSet, and conditions show its state.
	reservation *slinkyv1beta1.NodeSetReservation
	conditions  []metav1.Condition
	// again is when a change that Slurm did not make yet is tried again; zero when there is none.
	again time.Time
}

// scope is what the phases of a reconcile share.
type scope struct {
	facts facts
	plan  *plan
	seen  *observation
	// now is what the plan has for the workers, without what an earlier phase has wait.
	now nodesetplan.Plan
}

// A phase does one thing for the workers of a NodeSet, and returns when to come back; zero when an event follows.
type phase func(ctx context.Context, s *scope) (again time.Time, err error)

// phases are in the order in which they are done. Each is done, also when one before it has failed. What asks Slurm comes last: Slurm may
// be silent, and nothing else waits for it.
func (r *reconciler) phases() []phase {
	return []phase{
		r.renewRecords,
		r.confirmPowerDown,
		r.execute,
		r.resume,
		r.makeClouds,
		r.reserve,
		r.cleanUpOrphanedNodes,
	}
}

// inTurn goes through phases, and returns the first time to come back and all errors.
func (s *scope) inTurn(ctx context.Context, phases []phase) (again time.Time, err error) {
	for _, do := range phases {
		t, failure := do(ctx, s)
		again, err = workerpod.Sooner(again, t), errors.Join(err, failure)
	}
	return again, err
}

// drive carries a plan out: first what workers need to exist, then the phases.
func (r *reconciler) drive(ctx context.Context, n *slinkyv1beta1.NodeSet, f facts, p *plan, seen *observation) error {
	defer func() { r.pace.looked(client.ObjectKeyFromObject(n), len(f.pods), r.Clock.Now()) }()
	seen.reservation = n.Status.Reservation
	if l, ok := r.cacheOf(n); ok && p.workers.Relist {
		l.Relist()
	}
	applyErr := r.Apply(ctx, n, &p.Plan, &corev1.ConfigMap{})
	if problems, _ := problem.FromError(applyErr); len(problems) > 0 || len(p.Problems) > 0 {
		return applyErr
	}
	if err := r.ensureFinalizer(ctx, n); err != nil { // before there is a worker
		return errors.Join(applyErr, err)
	}
	if err := r.keep(ctx, n, f, p.history); err != nil {
		return errors.Join(applyErr, err)
	}
	seen.driven = true
	r.wantJobs(n, f.pods, p.workers, f.workers.Now)
	if workerpod.DryRun(n) {
		return applyErr
	}
	s := &scope{facts: f, plan: p, seen: seen, now: p.workers} // what waits is still expected
	again, err := s.inTurn(ctx, r.phases())
	seen.again = again
	return errors.Join(applyErr, err)
}

// marksOwner is the field manager of the marks that this controller puts on pods, apart from what others put on them.
const marksOwner = kube.FieldManager + "-nodeset"

// execute carries out what the plan for the workers has for now, many pods at a time. Each of its steps is independent: what fails is tried
// again by the next reconcile, which makes the same plan. What somebody does not allow is tried again at its own time.
func (r *reconciler) execute(ctx context.Context, s *scope) (again time.Time, err error) {
	n, f, p := s.facts.set, s.facts, s.plan
	byName := make(map[string]*corev1.Pod, len(f.pods))
	for i := range f.pods {
		byName[f.pods[i].Name] = &f.pods[i]
	}
	refused, err := r.ownClaims(ctx, n, f.pods, s.now.ScaledIn(f.workers.Pods))
	if err != nil {
		return time.Time{}, err
	}
	now := s.now.Sparing(refused.stay)
	return refused.again, errors.Join(
		errors.Join(refused.problems...),
		r.createAll(ctx, f.input, now.Create, p.revision),
		r.deleteAll(ctx, n, now.Delete, byName, "in which nothing ran"),
		r.deleteAll(ctx, n, now.PowerDown, byName, "whose Slurm nodes are powered down"),
		r.retireAll(ctx, n, now.Retire, byName, p.texts),
		kube.SlowStart(len(now.Unretire), func(i int) error {
			name := now.Unretire[i]
			return wrap(r.mark(ctx, n, byName[name], r.marks(byName[name], "", p.texts[name])), "unretiring", n, name)
		}),
		r.annotate(ctx, f, p, now),
	)
}

// deleteAll deletes pods in which nothing runs; why gives the reason for the event.
func (r *reconciler) deleteAll(ctx context.Context, n *slinkyv1beta1.NodeSet, names []string, byName map[string]*corev1.Pod, why string) error {
	var deleted done
	err := kube.SlowStart(len(names), func(i int) error {
		pod := byName[names[i]]
		err := r.Client.Delete(ctx, pod, client.Preconditions{UID: &pod.UID, ResourceVersion: &pod.ResourceVersion})
		if err == nil {
			r.Applier.Deleted(n, pod)
			deleted.add(pod.Name)
		}
		return wrap(reconcile.IgnoreGone(err), "deleting the idle", n, pod.Name)
	})
	if pods := deleted.String(); pods != "" {
		r.Recorder.Eventf(n, nil, corev1.EventTypeNormal, "SuccessfulDelete", "Delete", "Deleted %s, %s", pods, why)
	}
	return err
}

// retireAll marks the workers that are to go.
func (r *reconciler) retireAll(ctx context.Context, n *slinkyv1beta1.NodeSet, retire []nodesetplan.Retirement, byName map[string]*corev1.Pod, texts map[string]string) error {
	retired := map[workerpod.Cause]*done{}
	for _, retirement := range retire {
		retired[retirement.Cause] = &done{}
	}
	err := kube.SlowStart(len(retire), func(i int) error {
		name, cause := retire[i].Pod, retire[i].Cause
		err := r.mark(ctx, n, byName[name], r.marks(byName[name], cause, texts[name]))
		if err == nil {
			retired[cause].add(name)
		}
		return wrap(err, "retiring", n, name)
	})
	for _, cause := range slices.Sorted(maps.Keys(retired)) {
		if pods := retired[cause].String(); pods != "" {
			log.FromContext(ctx).Info("Retired workers", "pods", pods, "cause", string(cause))
			r.Recorder.Eventf(n, nil, corev1.EventTypeNormal, "Retiring", "Retire",
				"Retiring %s (%s): deleted when the Slurm node is drained", pods, string(cause))
		}
	}
	return err
}

// done are the pods with which something was done, so that a thousand make one event.
type done struct {
	mu       sync.Mutex
	names    []string
	failures []error
}

// hold notes why something was not done with a pod.
func (d *done) hold(why error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failures = append(d.failures, why)
}

// held joins what was noted.
func (d *done) held() error { return errors.Join(d.failures...) }

func (d *done) add(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.names = append(d.names, name)
}

// String names the pods as a hostlist, cut to fit an event; it is empty when there are none.
func (d *done) String() string {
	switch len(d.names) {
	case 0:
		return ""
	case 1:
		return "Pod " + d.names[0]
	}
	return fmt.Sprintf("%d Pods %s", len(d.names), hostlist.Short(d.names))
}

// mark puts exactly these annotations of ours on a pod, and takes away those that we set before and that are not among them. A plan from a
// view without the mark could retire another worker in addition, so the write is noted.
func (r *reconciler) mark(ctx context.Context, n *slinkyv1beta1.NodeSet, pod *corev1.Pod, annotations map[string]string) error {
	marked, err := kube.Mark(ctx, r.Client, pod, marksOwner, kube.Marks{Annotations: annotations})
	if err == nil {
		r.Applier.Changed(n, marked)
	}
	return reconcile.IgnoreGone(err)
}

func wrap(err error, what string, n *slinkyv1beta1.NodeSet, pod string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s Pod %s of NodeSet %s/%s: %w", what, pod, n.Namespace, n.Name, err)
}

// tell puts into the plan what the status and single pods show about it.
func tell(f facts, p *plan) {
	waiting, before := map[string]string{}, map[string]string{}
	for i := range f.pods {
		pod := &f.pods[i]
		if pod.Annotations[slinkyv1beta1.AnnotationRetired] != "" {
			before[pod.Name] = pod.Annotations[slinkyv1beta1.AnnotationPlan]
		}
		if c := workerpod.Condition(pod, slinkyv1beta1.PodConditionRetiring); c != nil && c.Reason == slinkyv1beta1.ReasonWaitingForJobs {
			waiting[pod.Name] = c.Message
		}
	}
	name := func(place workerpod.Place) string { return place.PodName(f.set) }
	steps, total := nodesetplan.Steps(f.planned(p.revision), p.workers, workerpod.DryRun(f.set), name, waiting)
	p.planned, p.texts = int32(total), map[string]string{} //nolint:gosec // a number of pods
	for _, s := range steps {
		p.steps = append(p.steps, slinkyv1beta1.NodeSetStep{Pod: s.Pod, Action: string(s.Action), Cause: string(s.Cause), Message: s.Message})
		p.texts[s.Pod] = s.Text()
		if text, retired := before[s.Pod]; retired && s.Brief {
			p.texts[s.Pod] = text // it has gone before that is written
		}
	}
}

// marks returns the annotations of ours that a pod is to have. A pod that is to go already has been so since it was marked first.
func (r *reconciler) marks(pod *corev1.Pod, cause workerpod.Cause, text string) map[string]string {
	out := map[string]string{}
	if cause != "" {
		out[slinkyv1beta1.AnnotationRetired], out[slinkyv1beta1.AnnotationPodCordon] = string(cause), "true"
		out[slinkyv1beta1.AnnotationRetiredAt] = r.Clock.Now().UTC().Format(time.RFC3339)
		if pod.Annotations[slinkyv1beta1.AnnotationRetired] != "" {
			out[slinkyv1beta1.AnnotationRetiredAt] = pod.Annotations[slinkyv1beta1.AnnotationRetiredAt]
		}
	}
	if text != "" {
		out[slinkyv1beta1.AnnotationPlan] = text
	}
	return out
}

// annotate writes on the pods what is going to happen to them, where that has changed and was not written with a mark. When a plan has more
// steps than are shown, pods show them with their marks alone. Otherwise each step that is done would move others into what is shown, and a
// pod that is written to cannot be deleted in the version that was decided about.
func (r *reconciler) annotate(ctx context.Context, f facts, plan *plan, now nodesetplan.Plan) error {
	causes, told := now.Causes(f.workers.Pods), map[string]bool{}
	for _, retirement := range now.Retire {
		told[retirement.Pod] = true
	}
	for _, name := range now.Unretire {
		told[name] = true
	}
	whole := int(plan.planned) <= nodesetplan.MaxSteps
	var changed []*corev1.Pod
	for i := range f.pods {
		p := &f.pods[i]
		planned := causes[p.Name] != "" || (f.workers.Rolling || f.workers.Scheduled) && p.Labels[slinkyv1beta1.LabelRevisionHash] != plan.revision
		if p.Annotations[slinkyv1beta1.AnnotationPlan] != plan.texts[p.Name] && !told[p.Name] && p.DeletionTimestamp == nil && (whole || !planned) {
			changed = append(changed, p)
		}
	}
	return kube.SlowStart(len(changed), func(i int) error {
		p := changed[i]
		return wrap(r.mark(ctx, f.set, p, r.marks(p, causes[p.Name], plan.texts[p.Name])), "telling the plan to", f.set, p.Name)
	})
}
