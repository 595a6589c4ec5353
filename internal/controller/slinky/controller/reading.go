// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmctld"
	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
)

// absences are nodes whose records were deleted and whose workers have not registered again.
type absences struct {
	nodes []string
	// endangered are the nodes that jobs name, or may name: slurmctld would end these jobs if it read its configuration now.
	endangered []string
}

const (
	// askTimeout is how long a pass waits for Slurm's answer about the jobs.
	askTimeout = 5 * time.Second
	// absenceInterval is how long after an answer the jobs are looked at again.
	absenceInterval = 10 * time.Second
)

// absent gathers the absences. Nothing is asked while there are none.
func (r *reconciler) absent(ctx context.Context, c *slinkyv1beta1.Controller) absences {
	l, ok := r.caches.Get(slurmcache.Key{Namespace: c.Namespace, Name: c.Name})
	if !ok || c.Spec.External {
		return absences{}
	}
	nodes := l.Absent()
	limited, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	endangered, err := l.Endangered(limited)
	if err != nil {
		log.FromContext(ctx).Info("Could not find out which jobs would end with another configuration", "why", err.Error())
	}
	return absences{nodes: nodes, endangered: endangered}
}

// wait returns a problem while jobs would end by a configuration with this digest. Annotation end-jobs lets them.
func (a absences) wait(c *slinkyv1beta1.Controller, digest string) error {
	if len(a.endangered) == 0 || c.Annotations[slinkyv1beta1.AnnotationEndJobs] == digest {
		return nil
	}
	return problem.Waitingf("", slinkyv1beta1.ReasonWaiting,
		"slurmctld gets %s after nodes %s have registered. Their workers are being replaced, and slurmctld would end the jobs that name them; annotation %s=%s accepts that",
		digest, hostlist.Compress(slices.Clone(a.endangered)), slinkyv1beta1.AnnotationEndJobs, digest)
}

// configure announces to the Slurm cache what slurmctld is to read, before that is written. It returns an error when records have been deleted
// since the absences were gathered, so that they are gathered again.
func (r *reconciler) configure(c *slinkyv1beta1.Controller, known absences, p *plan) error {
	l, ok := r.caches.Get(slurmcache.Key{Namespace: c.Namespace, Name: c.Name})
	if !ok {
		return nil
	}
	digest, external := p.announced, c.Spec.External
	absent := l.Configure(slurmcache.Configuration{Digest: digest, Loaded: func(d slurmcache.Daemons) bool {
		return external || d.Loaded && slurmctld.Stamp(d.Parameters) == digest
	}})
	for _, name := range absent {
		if p.edits && !slices.Contains(known.nodes, name) {
			return fmt.Errorf("configuring %s/%s: the record of Slurm node %s was deleted meanwhile", c.Namespace, c.Name, name)
		}
	}
	return nil
}
