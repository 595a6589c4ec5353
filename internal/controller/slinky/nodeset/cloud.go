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
	"github.com/coxswain-hpc/coxswain/internal/slurm/link"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

// maxMade is how many records are made at once: each takes up to three calls, and all of them have to end within slurmCallTimeout.
const maxMade = 20

// makeClouds gives the nodes that Slurm powers up and down records with State=CLOUD, and deletes those of another spec. again is when to
// come back if something is left to do.
func (r *reconciler) makeClouds(ctx context.Context, s *scope) (again time.Time, err error) {
	n, f := s.facts.set, s.facts
	l, ok := r.linkOf(n)
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
	if errors.Is(err, link.ErrClosed) {
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
func (r *reconciler) writeClouds(ctx context.Context, l *link.Link, n *slinkyv1beta1.NodeSet, f facts, wanted nodesetplan.Clouds) error {
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
	failures := link.Failures{}
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
	maps.DeleteFunc(failures, func(_ string, err error) bool { return rest.NodesBusy(err) || errors.Is(err, link.ErrNamed) })
	return failures.Err()
}

// cloudLines returns the lines from which records are made, by the names of their nodes.
func cloudLines(ctx context.Context, l *link.Link, n *slinkyv1beta1.NodeSet, clouds []nodesetplan.Cloud) (map[string]string, error) {
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
