// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/controller/slinky/nodeset/nodesetplan"
	"github.com/coxswain-hpc/coxswain/internal/reconcile/perkey"
	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
	"github.com/coxswain-hpc/coxswain/internal/slurm/link"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// jobInterest is which NodeSets wait to hear when jobs end. It may be lost: then they ask, and wait, anew.
type jobInterest struct {
	of perkey.Memory[types.NamespacedName, interestedIn]
}

// interestedIn is the Slurm nodes about whose jobs one NodeSet waits to hear.
type interestedIn struct {
	link  link.Key
	since time.Time
	nodes hostlist.Set
}

// since returns since when a NodeSet asks; zero when it does not.
func (a *jobInterest) since(set types.NamespacedName) time.Time {
	return a.of.Get(set).since
}

// about returns the NodeSets that asked about what changed.
func (a *jobInterest) about(change link.Change) []types.NamespacedName {
	var out []types.NamespacedName
	for set, q := range a.of.All() {
		if q.link == change.Link && q.nodes.Contains(change.Node) {
			out = append(out, set)
		}
	}
	return out
}

// wantJobs has the link ask for the jobs of the workers that the plan names, and for no others.
func (r *reconciler) wantJobs(n *slinkyv1beta1.NodeSet, pods []corev1.Pod, plan nodesetplan.Plan, now time.Time) {
	key := client.ObjectKeyFromObject(n)
	who := "NodeSet " + key.String()
	cluster := link.Key{Namespace: n.Namespace, Name: n.Spec.ControllerRef.Name}
	named := hostlist.SetOf(plan.WantJobs...)
	var nodes []string
	for i := range pods {
		if named.Contains(pods[i].Name) {
			nodes = append(nodes, workerpod.SlurmNode(&pods[i]))
		}
	}
	asked := false
	r.interest.of.Change(key, func(q *interestedIn) bool {
		if asked = !q.since.IsZero(); !asked {
			q.since = now
		}
		q.link, q.nodes = cluster, hostlist.SetOf(nodes...)
		return len(nodes) > 0
	})
	if l, ok := r.links.Get(cluster); ok && (asked || len(nodes) > 0) {
		l.WantJobs(who, nodes...)
	}
}
