// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
)

// joining is how long an Event waits for others that say the same. Each is a write, and nobody waits for it as somebody may
// for what else is written at the same time.
const joining = 2 * time.Second

// news joins what is told of single workers by Events: of a thousand that drain, a few Events of their NodeSet tell.
type news struct {
	recorder events.EventRecorder

	mu      sync.Mutex
	waiting []*report
}

// story is what happened, without to whom.
type story struct {
	// reason and action are those of the Event.
	reason, action string
	// what is told with a name in it, as "Slurm node %s drains", and many of several, as "%d Slurm nodes %s drain". text is added
	// to both.
	one, many, text string
	// gone says that the pod is no more, so that the Event is one of the NodeSet even of a single worker.
	gone bool
}

// report is a story about workers of one NodeSet.
type report struct {
	story
	set *slinkyv1beta1.NodeSet
	// first is the pod of the first name, which tells an Event from the next one: the API server's clients count those that are
	// alike instead of writing them.
	first *corev1.Pod
	names []string
}

// tell notes what happened to a worker, which is told by a name: that of the pod, or of the Slurm node.
func (n *news) tell(set *slinkyv1beta1.NodeSet, pod *corev1.Pod, name string, s story) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.waiting) == 0 {
		time.AfterFunc(joining, n.publish)
	}
	i := slices.IndexFunc(n.waiting, func(r *report) bool { return r.set.UID == set.UID && r.story == s })
	if i < 0 {
		i = len(n.waiting)
		n.waiting = append(n.waiting, &report{story: s, set: set})
	}
	told := n.waiting[i]
	if told.names = append(told.names, name); told.first == nil || pod.Name < told.first.Name {
		told.first = pod
	}
}

// publish tells what has been noted.
func (n *news) publish() {
	n.mu.Lock()
	waiting := n.waiting
	n.waiting = nil
	n.mu.Unlock()
	for _, r := range waiting {
		var regarding, related client.Object = r.set, r.first
		text := fmt.Sprintf(r.one, r.names[0])
		if len(r.names) > 1 {
			list := hostlist.Compress(r.names)
			if len(list) > longestList {
				list = list[:longestList] + "…"
			}
			text = fmt.Sprintf(r.many, len(r.names), list)
		} else if !r.gone {
			regarding, related = r.first, r.set
		}
		n.recorder.Eventf(regarding, related, corev1.EventTypeNormal, r.reason, r.action, "%s", kube.Note(text+r.text))
	}
}

// longestList is how much of a host list fits into an Event beside what it says.
const longestList = 512

// Start tells the rest at the end of the operator.
func (n *news) Start(ctx context.Context) error {
	<-ctx.Done()
	n.publish()
	return nil
}
