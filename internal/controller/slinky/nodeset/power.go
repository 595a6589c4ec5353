// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/controller/slinky/nodeset/nodesetplan"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmd"
	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// power returns what Slurm reports now of the nodes of a NodeSet that it powers up and down; nil where it does not. registration is the
// digest of what its workers register with.
func (r *reconciler) power(n *slinkyv1beta1.NodeSet, pods []corev1.Pod, registration string) *nodesetplan.PowerSaving {
	if !n.SavesPower() {
		return nil
	}
	l, ok := r.cacheOf(n)
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
func powerIn(n *slinkyv1beta1.NodeSet, pods []corev1.Pod, snapshot *slurmcache.Snapshot, registration string) *nodesetplan.PowerSaving {
	saving := savesPower(n)
	if saving.Asked = snapshot.Trust == slurmcache.Fresh; !saving.Asked {
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
			Name: name, State: snapshot.State(name), Reason: slurmcache.ReasonOf(found),
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
	l, ok := r.cacheOf(n)
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
	l, ok := r.cacheOf(n)
	if len(names) == 0 || !ok {
		return again, nil
	}
	var failures slurmcache.Failures
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
	maps.DeleteFunc(failures, func(_ string, err error) bool {
		return errors.Is(err, slurmcache.ErrHeld) || errors.Is(err, slurmcache.ErrClosed)
	})
	return r.Clock.Now().Add(orphanCheckInterval), failures.Err()
}

// maxMade is how many records are made at once: each takes up to three calls, and all of them have to end within slurmCallTimeout.
const maxMade = 20

// makeClouds gives the nodes that Slurm powers up and down records with State=CLOUD, and deletes those of another spec. again is when to
// come back if something is left to do.
func (r *reconciler) makeClouds(ctx context.Context, s *scope) (again time.Time, err error) {
	n, f := s.facts.set, s.facts
	l, ok := r.cacheOf(n)
	if !ok || nodesetplan.CloudRecords(f.workers).Empty() {
		return again, nil
	}
	var left, wrote bool
	again, err = r.callSlurm(ctx, n, func(ctx context.Context) error {
		snapshot, err := l.Confirm(ctx, slices.Collect(maps.Values(f.workers.PowerSaving.Names))...)
		if err != nil {
			return err
		}
		in := f.workers
		in.PowerSaving = powerIn(n, f.pods, snapshot, f.registration)
		wanted := nodesetplan.CloudRecords(in)
		left, wrote = len(wanted.Make) > maxMade, !wanted.Empty()
		wanted.Make = wanted.Make[:min(len(wanted.Make), maxMade)]
		return r.writeClouds(ctx, l, n, f, wanted)
	})
	if errors.Is(err, slurmcache.ErrClosed) {
		return time.Time{}, nil
	}
	switch {
	case err != nil:
	case left:
		again = r.Clock.Now().Add(busyRetryInterval)
	case wrote: // no event follows when a record is gone
		again = r.Clock.Now().Add(orphanCheckInterval)
	}
	return again, err
}

// writeClouds does what is to be done about records. All that can fail without a trace comes before the first deletion.
func (r *reconciler) writeClouds(ctx context.Context, l *slurmcache.Cache, n *slinkyv1beta1.NodeSet, f facts, wanted nodesetplan.Clouds) error {
	lines, err := cloudLines(ctx, l, n, wanted.Make)
	if err != nil {
		return err
	}
	deleted := wanted.Delete
	for _, c := range wanted.Make {
		if c.Anew {
			deleted = append(deleted, c.Name)
		}
	}
	failures := slurmcache.Failures{}
	if len(deleted) > 0 {
		maps.Copy(failures, l.Renew(ctx, deleted))
	}
	// Between the deletion and the creation, Slurm does not have the node. It is created also when the time is over.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), slurmCallTimeout)
	defer cancel()
	var made []string
	for _, line := range slices.Compact(slices.Sorted(maps.Values(lines))) {
		comments := map[string]string{}
		for name, own := range lines {
			if own == line && failures[name] == nil {
				comments[name] = f.cloudComment(name)
			}
		}
		if len(comments) == 0 {
			continue
		}
		refused := l.MakeCloud(ctx, line, comments)
		maps.Copy(failures, refused)
		maps.DeleteFunc(comments, func(name, _ string) bool { return refused[name] != nil })
		made = slices.AppendSeq(made, maps.Keys(comments))
	}
	described := map[string]string{}
	for _, name := range wanted.Describe {
		described[name] = f.cloudComment(name)
	}
	maps.Copy(failures, l.Describe(ctx, described))
	if len(made) > 0 {
		list := hostlist.Compress(made)
		log.FromContext(ctx).Info("Made records of Slurm nodes with State=CLOUD", "nodes", list)
		r.Recorder.Eventf(n, nil, corev1.EventTypeNormal, "SlurmNodesMade", "Create", "Made Slurm nodes %s, which Slurm powers up when a job needs them", list)
	}
	// A change of the node wakes the NodeSet, and the nodes that jobs name are looked at again soon.
	maps.DeleteFunc(failures, func(_ string, err error) bool { return rest.NodesBusy(err) || errors.Is(err, slurmcache.ErrNamed) })
	return failures.Err()
}

// cloudLines returns the lines from which records are made, by the names of their nodes.
func cloudLines(ctx context.Context, l *slurmcache.Cache, n *slinkyv1beta1.NodeSet, clouds []nodesetplan.Cloud) (map[string]string, error) {
	lines, like := map[string]string{}, map[string]string{}
	for _, c := range clouds {
		if like[c.Like] == "" {
			machine, err := l.Hardware(ctx, c.Like)
			if err != nil {
				return nil, err
			}
			if like[c.Like], err = slurmd.CloudConf(n, machine); err != nil {
				return nil, fmt.Errorf("describing Slurm nodes like %s: %w", c.Like, err)
			}
		}
		lines[c.Name] = like[c.Like]
	}
	return lines, nil
}

// cloudComment returns the comment of a node whose worker does not exist.
func (f facts) cloudComment(name string) string {
	comment := node.Comment{Namespace: f.set.Namespace, NodeSetName: f.set.Name, NodeSetUID: string(f.set.UID), Registration: f.registration}
	for ordinal, other := range f.workers.PowerSaving.Names {
		if other == name {
			comment.PodName = f.set.PodName(ordinal)
		}
	}
	return comment.String()
}
