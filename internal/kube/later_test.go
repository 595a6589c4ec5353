// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// forgetful records the kinds that are dropped.
type forgetful struct {
	cache.Cache
	removed []string
}

// RemoveInformer is part of cache.Cache.
func (f *forgetful) RemoveInformer(_ context.Context, obj client.Object) error {
	f.removed = append(f.removed, obj.GetObjectKind().GroupVersionKind().Kind)
	return nil
}

func TestAKindIsWatchedAsLongAsItIsServed(t *testing.T) {
	kept, watches := &forgetful{}, 0
	l := &Later{cache: kept, started: map[schema.GroupVersionKind]bool{}}
	kind := metav1.SchemeGroupVersion.WithKind("Database")
	for i, step := range []struct {
		joined, served           bool
		wantWatches, wantRemoved int
	}{
		{served: true},
		{joined: true},
		{joined: true, served: true, wantWatches: 1},
		{joined: true, served: true, wantWatches: 1},
		{joined: true, wantWatches: 1, wantRemoved: 1},
		{joined: true, wantWatches: 1, wantRemoved: 1},
		{joined: true, served: true, wantWatches: 2, wantRemoved: 1},
	} {
		if step.joined {
			l.watch = func(source.Source) error { watches++; return nil }
		}
		if err := l.Follow(t.Context(), step.served, kind); err != nil {
			t.Fatal(err)
		}
		if watches != step.wantWatches || len(kept.removed) != step.wantRemoved {
			t.Errorf("step %d: %d watches and %d removals, want %d and %d", i, watches, len(kept.removed), step.wantWatches, step.wantRemoved)
		}
	}
}
