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
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/controller/slinky/nodeset/nodesetplan"
	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"
	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

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
