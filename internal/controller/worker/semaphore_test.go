// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

func podNamed(i int) types.NamespacedName {
	return types.NamespacedName{Namespace: "slurm", Name: fmt.Sprintf("w-%d", i)}
}

func TestWhoWaitsLongestIsNext(t *testing.T) {
	var woken []string
	writes := semaphore{wake: func(pod types.NamespacedName) { woken = append(woken, pod.Name) }}
	for i, want := range []bool{true, true, false, false, false} {
		if got := writes.take(podNamed(i), 2, false); got != want {
			t.Errorf("w-%d has a turn: %t", i, got)
		}
	}
	if !writes.take(podNamed(0), 2, false) {
		t.Error("who has a turn has lost it")
	}
	if !writes.take(podNamed(9), 2, true) {
		t.Error("who comes first stands in line")
	}
	writes.end(podNamed(4), 2) // it has none
	writes.end(podNamed(9), 2)
	writes.end(podNamed(0), 2)
	writes.end(podNamed(1), 1)
	if want := []string{"w-2", "w-3"}; !slices.Equal(woken, want[:1]) {
		t.Errorf("woken are %v, want %v", woken, want[:1])
	}
	writes.end(podNamed(2), 2)
	if want := []string{"w-2", "w-3", "w-4"}; !slices.Equal(woken, want) {
		t.Errorf("woken are %v, want %v", woken, want)
	}
	if !writes.take(podNamed(3), 1, false) {
		t.Error("who was woken has no turn")
	}
}

// Every pod that waits is woken in the end, whatever the limits are meanwhile.
func TestNobodyWaitsForEver(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var queue []types.NamespacedName
		writes := semaphore{wake: func(pod types.NamespacedName) { queue = append(queue, pod) }}
		const pods = 20
		served, running := map[types.NamespacedName]bool{}, map[types.NamespacedName]bool{}
		for i := range pods {
			queue = append(queue, podNamed(i))
		}
		limit := func() int { return rapid.IntRange(1, 5).Draw(t, "limit") }
		for len(queue)+len(running) > 0 {
			if len(running) > 0 && (len(queue) == 0 || rapid.Bool().Draw(t, "end")) {
				pod := slices.MinFunc(slices.Collect(maps.Keys(running)), func(a, b types.NamespacedName) int { return strings.Compare(a.Name, b.Name) })
				delete(running, pod)
				writes.end(pod, limit())
				continue
			}
			pod := queue[0]
			queue = queue[1:]
			// A reconcile that finds nothing to write any more gives its turn back.
			if rapid.IntRange(0, 9).Draw(t, "idle") == 0 {
				served[pod] = true
				writes.end(pod, limit())
				continue
			}
			if writes.take(pod, limit(), rapid.IntRange(0, 9).Draw(t, "first") == 0) {
				served[pod], running[pod] = true, true
			}
		}
		if len(served) != pods || len(writes.held)+len(writes.waiting)+len(writes.waits) > 0 {
			t.Fatalf("%d of %d were served; left are %+v", len(served), pods, &writes)
		}
	})
}
