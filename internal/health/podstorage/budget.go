// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package podstorage

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/health"
	"github.com/coxswain-hpc/coxswain/internal/health/budget"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// workers selects worker pods.
func workers() client.ListOption { return client.HasLabels{slinkyv1beta1.LabelCluster} }

// applyBudgets asks the disruption budget of each NodeSet which of the workers may be drained whose ephemeral storage is nearly used up. The others wait.
func (m *Meter) applyBudgets(pods []corev1.Pod, facts, last map[types.UID]health.Storage) {
	sets := map[types.NamespacedName][]*corev1.Pod{}
	for i := range pods {
		if pods[i].DeletionTimestamp != nil {
			continue // the next pod of that name may be there already
		}
		if owner := workerpod.Owner(&pods[i]); owner != nil {
			key := types.NamespacedName{Namespace: pods[i].Namespace, Name: owner.Name}
			sets[key] = append(sets[key], &pods[i])
		}
	}
	for key, members := range sets {
		m.asked[key] = true
		m.applyBudget(key, members, facts, last)
	}
	for key := range m.asked {
		if len(sets[key]) == 0 {
			m.budgets.Forget(key)
			delete(m.asked, key)
		}
	}
}

// applyBudget asks the disruption budget of a NodeSet. While Slurm does not answer it is not known which workers are out of service: those that wait go on
// waiting, and no other may go.
func (m *Meter) applyBudget(key types.NamespacedName, pods []*corev1.Pod, facts, last map[types.UID]health.Storage) {
	l, ok := m.caches.Get(slurmcache.Key{Namespace: key.Namespace, Name: pods[0].Labels[slinkyv1beta1.LabelCluster]})
	var snapshot *slurmcache.Snapshot
	if ok {
		snapshot = l.Snapshot()
	}
	fresh := ok && snapshot.Trust == slurmcache.Fresh
	may := map[string]bool{}
	if fresh {
		for _, name := range m.budgets.Ask(m.request(key, pods, shownBy(snapshot), facts, last)).Go {
			may[name] = true
		}
	}
	for _, p := range pods {
		is, limited := last[p.UID]
		if !limited {
			continue
		}
		is.Waits = is.Full == node.Yes && !may[workerpod.SlurmNode(p)]
		if before := m.last[p.UID]; !fresh && is.Full == node.Yes && before.Full == node.Yes {
			is.Waits = before.Waits
		}
		last[p.UID] = is
		if facts[p.UID].Full == node.Yes {
			facts[p.UID] = is
		}
	}
}

// shown is the state of a Slurm node, and why it is so.
type shown func(name string) (node.State, node.Reason)

// shownBy returns what a snapshot shows.
func shownBy(snapshot *slurmcache.Snapshot) shown {
	return func(name string) (node.State, node.Reason) { return snapshot.State(name), snapshot.Reason(name) }
}

// request returns what the disruption budget is asked. A worker that a person has drained, or that is to go, needs no place. A kubelet that does not
// answer keeps the place that its worker has, and gets no new one.
func (m *Meter) request(key types.NamespacedName, pods []*corev1.Pod, shown shown, facts, last map[types.UID]health.Storage) budget.Request {
	r := budget.Request{NodeSet: key, By: check}
	for _, p := range pods {
		w := budget.Worker{Node: workerpod.SlurmNode(p)}
		w.State, w.Reason = shown(w.Node)
		r.Workers = append(r.Workers, w)
		before := m.last[p.UID]
		has := before.Full == node.Yes && !before.Waits
		stays := p.Annotations[slinkyv1beta1.AnnotationRetired] == "" && node.HeldBy(w.State, w.Reason) != node.SomebodyElse
		if last[p.UID].Full == node.Yes && (has || facts[p.UID].Full == node.Yes) && stays {
			r.Wanted = append(r.Wanted, w.Node)
		}
	}
	return r
}
