// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/coxswain-hpc/coxswain/internal/controller/slinky/nodeset/nodesetplan"
)

func TestHowLongTheDeletionOfARecordIsTried(t *testing.T) {
	t.Parallel()
	var r renewals
	set, now := types.NamespacedName{Name: "w"}, time.Unix(1000, 0)
	for _, step := range []struct {
		after  time.Duration
		failed bool
		again  bool
	}{
		{0, true, true}, {nodesetplan.RecordDeleteRetryInterval, true, true}, {2 * nodesetplan.RecordDeleteRetryInterval, false, false}, // it was deleted
		{nodesetplan.MaxRecordDeleteTime, true, true}, {2*nodesetplan.MaxRecordDeleteTime - nodesetplan.RecordDeleteRetryInterval, true, true}, {2 * nodesetplan.MaxRecordDeleteTime, true, false}, // the worker is made all the same
		{2*nodesetplan.MaxRecordDeleteTime + nodesetplan.RecordDeleteRetryInterval, true, true}, // and another one later
	} {
		if got := r.failed(set, now.Add(step.after), step.failed); !got.IsZero() != step.again {
			t.Errorf("after %s: again is %s", step.after, got)
		}
		if got := r.trying(set, now.Add(step.after), false); !got.IsZero() != step.again {
			t.Errorf("while Slurm is not heard of, after %s: again is %s", step.after, got)
		}
	}
}

// Slurm is lost while a worker is being replaced: its record cannot be looked at. That is tried for as long, also when the Controller
// reports meanwhile that Slurm is not reachable.
func TestHowLongSlurmIsWaitedForThatIsNotHeardOf(t *testing.T) {
	t.Parallel()
	var r renewals
	set, now := types.NamespacedName{Name: "w"}, time.Unix(1000, 0)
	for _, step := range []struct {
		after            time.Duration
		reachable, again bool
	}{
		{0, false, false}, // a cluster that begins does not wait
		{time.Second, true, true}, {20 * time.Second, false, true},
		{nodesetplan.MaxRecordDeleteTime, false, true}, {nodesetplan.MaxRecordDeleteTime + time.Second, false, false}, // the worker is made all the same
		{2 * nodesetplan.MaxRecordDeleteTime, true, true}, // Slurm was back, and is lost again
	} {
		if got := r.trying(set, now.Add(step.after), step.reachable); !got.IsZero() != step.again {
			t.Errorf("after %s: again is %s", step.after, got)
		}
	}
}
