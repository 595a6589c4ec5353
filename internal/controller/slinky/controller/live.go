// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmctld"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
)

// live gathers the slurm.conf that is there, or what lingered in it when it is lost, and what the next one depends on in Slurm: nodes, and
// partitions that no job needs.
func (r *reconciler) live(ctx context.Context, c *slinkyv1beta1.Controller, set *appsv1.StatefulSet, in *slurmctld.Input) error {
	if c.Spec.External {
		return nil
	}
	var config corev1.ConfigMap
	err := r.Client.Get(ctx, types.NamespacedName{Namespace: c.Namespace, Name: c.ConfigName()}, &config)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading ConfigMap %s/%s: %w", c.Namespace, c.ConfigName(), err)
	}
	in.Live = slurmctld.ReadLive(r.remember(c, config.Data))
	if in.Live == nil {
		in.Live = slurmctld.ReadLingering(set)
	}
	in.MaxNodeCount = slurmctld.TableOfNodes(in.Live)
	l, ok := r.caches.Get(slurmcache.Key{Namespace: c.Namespace, Name: c.Name})
	if !ok {
		return nil
	}
	in.Free, in.FreeNodes = l.FreePartitions(), l.FreeNodes()
	snapshot := l.Snapshot()
	if snapshot.Trust != slurmcache.Fresh {
		return nil
	}
	in.SlurmNodes, in.Records = snapshot.Len(), map[string]int{}
	for found := range snapshot.Nodes() {
		if comment, ok := node.ParseComment(found.Comment); ok && comment.Namespace == c.Namespace {
			in.Records[comment.NodeSetName]++
		}
	}
	return nil
}

// maxRemembered is the number of Controllers whose configuration is remembered.
const maxRemembered = 100

// remember returns the files of the ConfigMap, or the last ones that it had when it is gone. The memory may be lost; what lingers for jobs
// is noted at the StatefulSet as well.
func (r *reconciler) remember(c *slinkyv1beta1.Controller, files map[string]string) map[string]string {
	if len(files) > 0 {
		r.configs.Add(c.UID, files)
		return files
	}
	last, _ := r.configs.Get(c.UID)
	files, _ = last.(map[string]string)
	return files
}
