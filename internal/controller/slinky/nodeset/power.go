// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/controller/slinky/nodeset/nodesetplan"
	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
	"github.com/coxswain-hpc/coxswain/internal/slurm/link"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// power returns what Slurm reports now of the nodes of a NodeSet that it powers up and down; nil where it does not. registration is the
// digest of what its workers register with.
func (r *reconciler) power(n *slinkyv1beta1.NodeSet, pods []corev1.Pod, registration string) *nodesetplan.PowerSaving {
	if !n.SavesPower() {
		return nil
	}
	l, ok := r.linkOf(n)
	if !ok {
		return savesPower(n)
	}
	return powerIn(n, pods, l.Snapshot(), registration)
}

// savesPower returns what is known about a NodeSet while Slurm is silent.
func savesPower(n *slinkyv1beta1.NodeSet) *nodesetplan.PowerSaving {
	before := n.Status.Desired
	if n.Status.ObservedGeneration == 0 {
		before = n.InitialWorkers()
	}
	return &nodesetplan.PowerSaving{Initial: int(n.InitialWorkers()), Before: int(min(before, n.Replicas()))}
}

// makesNodes is the first release of Slurm that makes nodes by REST. All releases from then on have the form of 26.05.5.
const makesNodes = "25.11"

// powerIn returns what a snapshot has on the nodes: of all possible ordinals, and of those that have pods.
func powerIn(n *slinkyv1beta1.NodeSet, pods []corev1.Pod, snapshot *link.Snapshot, registration string) *nodesetplan.PowerSaving {
	saving := savesPower(n)
	if saving.Asked = snapshot.Trust == link.Fresh; !saving.Asked {
		return saving
	}
	saving.Makes = snapshot.Meta.Release >= makesNodes
	saving.Nodes, saving.Names = map[int]nodesetplan.PowerNode{}, map[int]string{}
	for ordinal := range int(n.Replicas()) {
		saving.Names[ordinal] = n.Hostname(ordinal)
	}
	for i := range pods {
		saving.Names[workerpod.Ordinal(&pods[i])] = workerpod.SlurmNode(&pods[i])
	}
	for ordinal, name := range saving.Names {
		found, _ := snapshot.Node(name)
		if found == nil {
			continue
		}
		comment, ours := node.ParseComment(found.Comment)
		saving.Nodes[ordinal] = nodesetplan.PowerNode{
			Name: name, State: snapshot.State(name), Reason: link.ReasonOf(found),
			Reserved:  found.Reservation != "" && found.Reservation != nodesetplan.ReservationName(n.Name),
			Described: found.Comment != "", Foreign: found.Comment != "" && !ours,
			Registered: registeredWith(comment, registration),
		}
	}
	return saving
}

// registeredWith answers whether the record of a node was made of a registration; Unknown when its comment does not have one.
func registeredWith(comment node.Comment, registration string) node.Answer {
	switch comment.Registration {
	case "":
		return node.Unknown
	case registration:
		return node.Yes
	}
	return node.No
}

// confirmPowerDown asks Slurm once more whether the nodes of the pods that go are powered down. Those that are not stay.
func (r *reconciler) confirmPowerDown(ctx context.Context, s *scope) (again time.Time, err error) {
	n, f, plan := s.facts.set, s.facts, &s.now
	l, ok := r.linkOf(n)
	if len(plan.PowerDown) == 0 || !ok {
		return again, nil
	}
	var names []string
	for i := range f.pods {
		if slices.Contains(plan.PowerDown, f.pods[i].Name) {
			names = append(names, workerpod.SlurmNode(&f.pods[i]))
		}
	}
	var confirmed []string
	var unanswered time.Time
	again, err = r.callSlurm(ctx, n, func(ctx context.Context) error {
		snapshot, err := l.Confirm(ctx, names...)
		if err != nil {
			log.FromContext(ctx).V(1).Info("Slurm did not confirm which nodes are powered down", "why", err.Error())
			unanswered = r.Clock.Now().Add(busyRetryInterval)
			return nil
		}
		in := f.workers
		in.PowerSaving = powerIn(n, f.pods, snapshot, f.registration)
		confirmed = nodesetplan.Make(in).PowerDown
		return nil
	})
	plan.PowerDown = slices.DeleteFunc(slices.Clone(plan.PowerDown), func(pod string) bool { return !slices.Contains(confirmed, pod) })
	return workerpod.Sooner(again, unanswered), err
}

// resume resumes nodes that are powered down, and which Slurm would not power up as they are. After a write, again is when to look again.
func (r *reconciler) resume(ctx context.Context, s *scope) (again time.Time, err error) {
	n, in := s.facts.set, s.facts.workers
	names := nodesetplan.NodesToResume(in)
	l, ok := r.linkOf(n)
	if len(names) == 0 || !ok {
		return again, nil
	}
	var failures link.Failures
	again, err = r.callSlurm(ctx, n, func(ctx context.Context) error {
		failures = l.Resume(ctx, names)
		return nil
	})
	if err != nil || !again.IsZero() {
		return again, err
	}
	var late []string
	for _, node := range in.PowerSaving.Nodes {
		if node.Late() && slices.Contains(names, node.Name) && failures[node.Name] == nil {
			late = append(late, node.Name)
		}
	}
	if len(late) > 0 {
		list := hostlist.Compress(late)
		log.FromContext(ctx).Info("Resumed Slurm nodes that did not come within ResumeTimeout", "nodes", list)
		r.Recorder.Eventf(n, nil, corev1.EventTypeWarning, slinkyv1beta1.ReasonResumeTimeout, "Resume",
			"Slurm nodes %s did not register within ResumeTimeout, and their jobs are pending again; Slurm may power the nodes up again", list)
	}
	maps.DeleteFunc(failures, func(_ string, err error) bool { return errors.Is(err, link.ErrHeld) || errors.Is(err, link.ErrClosed) })
	return r.Clock.Now().Add(orphanCheckInterval), failures.Err()
}
