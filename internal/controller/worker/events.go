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

// eventJoinInterval is how long an Event waits for others with the same text. Each is a write, and nobody waits for it as for other writes
// of that moment.
const eventJoinInterval = 2 * time.Second

// eventJoiner joins Events of single workers: for a thousand that drain, it writes a few Events of their NodeSet.
type eventJoiner struct {
	recorder events.EventRecorder

	mu      sync.Mutex
	waiting []*joinedEvent
}

// eventText is what happened, without the names of the workers.
type eventText struct {
	// reason and action are the reason and action of the Event.
	reason, action string
	// one is the text with a name in it, as "Slurm node %s drains", many the text for several, as "%d Slurm nodes %s drain". text is added to
	// both.
	one, many, text string
	// warning reports whether somebody has to do something about it.
	warning bool
	// gone reports whether the pod is gone, so that even for a single worker the Event is one of the NodeSet.
	gone bool
}

// joinedEvent is one text about workers of one NodeSet.
type joinedEvent struct {
	eventText
	set *slinkyv1beta1.NodeSet
	// first is the pod of the first name. It distinguishes an Event from the next one: the API server's clients count Events that are alike
	// instead of writing them.
	first *corev1.Pod
	names []string
}

// add notes what happened to a worker. name is the name of the pod, or of the Slurm node.
func (n *eventJoiner) add(set *slinkyv1beta1.NodeSet, pod *corev1.Pod, name string, s eventText) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.waiting) == 0 {
		time.AfterFunc(eventJoinInterval, n.publish)
	}
	i := slices.IndexFunc(n.waiting, func(r *joinedEvent) bool { return r.set.UID == set.UID && r.eventText == s })
	if i < 0 {
		i = len(n.waiting)
		n.waiting = append(n.waiting, &joinedEvent{eventText: s, set: set})
	}
	told := n.waiting[i]
	if told.names = append(told.names, name); told.first == nil || pod.Name < told.first.Name {
		told.first = pod
	}
}

// publish writes the Events that were noted.
func (n *eventJoiner) publish() {
	n.mu.Lock()
	waiting := n.waiting
	n.waiting = nil
	n.mu.Unlock()
	for _, r := range waiting {
		var regarding, related client.Object = r.set, r.first
		text := fmt.Sprintf(r.one, r.names[0])
		if len(r.names) > 1 {
			text = fmt.Sprintf(r.many, len(r.names), hostlist.Short(r.names))
		} else if !r.gone {
			regarding, related = r.first, r.set
		}
		kind := corev1.EventTypeNormal
		if r.warning {
			kind = corev1.EventTypeWarning
		}
		n.recorder.Eventf(regarding, related, kind, r.reason, r.action, "%s", kube.Note(text+r.text))
	}
}

// Start publishes what is left when the operator ends.
func (n *eventJoiner) Start(ctx context.Context) error {
	<-ctx.Done()
	n.publish()
	return nil
}
