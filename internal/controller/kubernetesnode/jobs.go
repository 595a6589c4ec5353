// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetesnode

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/coxswain-hpc/coxswain/internal/health"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
)

// wantJobs has Slurm caches ask for the jobs of the workers on a Kubernetes node when it must be known that they have none. The answer wakes the
// node.
func (r *reconciler) wantJobs(name string, facts health.Node) {
	wanted := map[types.NamespacedName][]string{}
	for _, cluster := range r.asked[name] {
		wanted[cluster] = nil
	}
	delete(r.asked, name)
	for i := range facts.Workers {
		if w := &facts.Workers[i]; facts.WantsJobs(w) {
			wanted[w.Cluster] = append(wanted[w.Cluster], w.Slurm)
		}
	}
	for cluster, nodes := range wanted {
		if len(nodes) > 0 {
			r.asked[name] = append(r.asked[name], cluster)
		}
		if l, ok := r.caches.Get(slurmcache.Key(cluster)); ok {
			l.WantJobs("Node "+name, nodes...)
		}
	}
}
