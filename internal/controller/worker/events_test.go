// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

// told keeps Events as lines. They come from a timer, and the race detector does not see that the test waits for it.
type told struct {
	mu    sync.Mutex
	lines []string
}

// Eventf is part of events.EventRecorder.
func (l *told) Eventf(regarding, related runtime.Object, _, reason, action, note string, args ...any) {
	name := func(o runtime.Object) string {
		if o, ok := o.(client.Object); ok {
			return o.GetName()
		}
		return ""
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, fmt.Sprintf("%s (%s) %s %s: %s", name(regarding), name(related), reason, action, fmt.Sprintf(note, args...)))
}

func (l *told) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lines)
}

func TestAThousandThatDrainAreOneEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var events told
		n := &eventJoiner{recorder: &events}
		set := func(name string) *slinkyv1beta1.NodeSet {
			return &slinkyv1beta1.NodeSet{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
		}
		tell := func(set *slinkyv1beta1.NodeSet, name string, s eventText) {
			n.add(set, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}, name, s)
		}
		drains := eventText{reason: "Drained", action: "SetState", one: "Slurm node %s drains", many: "%d Slurm nodes %s drain", text: ": why"}
		deleted := eventText{reason: "Deleted", action: "Delete", one: "Deleted Pod %s", many: "Deleted %d Pods %s", gone: true}
		w := set("w")
		for i := range 1000 {
			tell(w, fmt.Sprintf("w-%d", 999-i), drains)
		}
		tell(set("v"), "v-0", drains)
		tell(w, "w-0", deleted)
		if got := events.all(); len(got) > 0 {
			t.Errorf("at once: %q", got)
		}
		time.Sleep(eventJoinInterval)
		synctest.Wait()
		want := []string{
			"w (w-0) Drained SetState: 1000 Slurm nodes w-[0-999] drain: why", "v-0 (v) Drained SetState: Slurm node v-0 drains: why",
			"w (w-0) Deleted Delete: Deleted Pod w-0",
		}
		if got := events.all(); !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		time.Sleep(time.Minute)
		if got := events.all(); len(got) > len(want) {
			t.Errorf("told again: %q", got[len(want):])
		}

		for i := range 1000 {
			tell(w, fmt.Sprintf("w-%d", 3*i), drains)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		err := n.Start(ctx)
		got := events.all()
		if err != nil || len(got) != len(want)+1 {
			t.Fatalf("at the end of the operator: %q, %v", got, err)
		}
		if note := got[len(want)]; len(note) > 1024 || !strings.HasSuffix(note, "… drain: why") {
			t.Errorf("a list too long for an Event: %q", note)
		}
		time.Sleep(time.Minute)
	})
}
