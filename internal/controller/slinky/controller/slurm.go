// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmctld"
	"github.com/coxswain-hpc/coxswain/internal/slurm/need"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
)

// wakeController wakes a Controller when its slurmctlds answer something else, or when their Slurm cache comes or goes.
func wakeController(_ context.Context, queue reconcile.Queue, change slurmcache.Change) {
	if change.Node == slurmcache.Slurmctld || change.Node == "" {
		queue.Add(ctrl.Request{NamespacedName: client.ObjectKey{Namespace: change.Cluster.Namespace, Name: change.Cluster.Name}})
	}
}

// running gathers what is known about the slurmctlds.
func (r *reconciler) running(ctx context.Context, c *slinkyv1beta1.Controller) (slurmctlds, error) {
	out := slurmctlds{needs: need.Answer{Unknown: "there is no RestApi, so Slurm cannot be asked"}}
	if l, ok := r.caches.Get(slurmcache.Key{Namespace: c.Namespace, Name: c.Name}); ok {
		out.connected, out.daemons, out.needs = true, l.Daemons(), l.LeavingJobs()
	}
	if c.Spec.External {
		return out, nil
	}
	var pods corev1.PodList
	if err := r.Client.List(ctx, &pods, client.InNamespace(c.Namespace), client.MatchingLabels(slurmctld.Labels(c).Selector())); err != nil {
		return out, fmt.Errorf("listing the slurmctld pods of %s/%s: %w", c.Namespace, c.Name, err)
	}
	out.pods = pods.Items
	return out, nil
}

// attend has the Slurm cache ask slurmctld until it has loaded the configuration, and whether partitions and nodes that linger may go.
func (r *reconciler) attend(c *slinkyv1beta1.Controller, p *plan) {
	l, ok := r.caches.Get(slurmcache.Key{Namespace: c.Namespace, Name: c.Name})
	if !ok {
		return
	}
	l.LeavePartitions(p.waits.Partitions...)
	l.LeaveNodes(p.waits.Nodes...)
	digest, external := p.configDigest, c.Spec.External
	l.Attend(slurmcache.Interest{
		Settled: func(d slurmcache.Daemons) bool {
			return d.Release != "" && (!d.Loaded || external || slurmctld.Stamp(d.Parameters) == digest)
		},
		Watch: c.Replicas() > 1,
	})
}
