// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coxswain-hpc/coxswain/internal/health"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

func TestHowManyWorkersChecksMayTakeOut(t *testing.T) {
	for name, c := range map[string]struct {
		text    string
		workers int
		want    int
		refused string
	}{
		"the limit is a tenth of thirty":              {text: "10%", workers: 30, want: 3},
		"the limit is what is whole of a tenth":       {text: "10%", workers: 29, want: 2},
		"the limit is one of a few":                   {text: "10%", workers: 3, want: 1},
		"the limit is one where there are no workers": {text: "10%", workers: 0, want: 1},
		"the limit is a number, whatever the size":    {text: "4", workers: 1000, want: 4},
		"the limit is all":                            {text: "100%", workers: 7, want: 7},
		"a limit of none is refused":                  {text: "0", refused: "at least 1"},
		"a limit of none of all is refused":           {text: "0%", refused: "at least 1"},
		"a negative limit is refused":                 {text: "-1", refused: "at least 1"},
		"a limit of more than all is refused":         {text: "101%", refused: "at most 100 %"},
		"a word is refused":                           {text: "ten", refused: "neither a number"},
		"nothing is refused":                          {text: "", refused: "neither a number"},
		"a sign is refused":                           {text: "+5", refused: "neither a number"},
		"a number that is too large is refused":       {text: "99999999999999999999", refused: "neither a number"},
		"a blank before the percentage is refused":    {text: "10 %", refused: "neither a number"},
	} {
		t.Run(name, func(t *testing.T) {
			limit, err := health.ParseDrainLimit(c.text)
			if c.refused != "" {
				if err == nil || !strings.Contains(err.Error(), c.refused) {
					t.Fatalf("%v is not about %q", err, c.refused)
				}
				return
			}
			if err != nil || limit.String() != c.text {
				t.Fatalf("%v, read as %s", err, limit)
			}
			if got := limit.Of(c.workers); got != c.want {
				t.Errorf("%d of %d", got, c.workers)
			}
		})
	}
}

func FuzzParseDrainLimit(f *testing.F) {
	for _, text := range []string{"10%", "3", "0", "-1%", "%", "+4", "1e3"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		limit, err := health.ParseDrainLimit(text)
		if err != nil {
			return
		}
		again, err := health.ParseDrainLimit(limit.String())
		if err != nil || again != limit {
			t.Errorf("%q is read as %v, and that as %v (%v)", text, limit, again, err)
		}
		if limit.Of(50) < 1 || limit.Percent && limit.Of(50) > 50 {
			t.Errorf("%q lets %d of 50 go", text, limit.Of(50))
		}
	})
}

func TestWhoMayBeTakenOut(t *testing.T) {
	two := health.DrainLimit{Number: 2}
	for name, c := range map[string]struct {
		budget health.DrainBudget
		want   health.DrainVerdict
	}{
		"nobody wants anything": {health.DrainBudget{Limit: two, Workers: 9, Out: []string{"w-1"}}, health.DrainVerdict{Out: 1, Limit: 2}},
		"the first by name go": {
			health.DrainBudget{Limit: two, Workers: 20, Wanted: []string{"w-10", "w-2", "w-9"}},
			health.DrainVerdict{Go: []string{"w-2", "w-9"}, Wait: []string{"w-10"}, Out: 2, Limit: 2},
		},
		"a worker that is out already counts": {
			health.DrainBudget{Limit: two, Workers: 9, Out: []string{"w-7"}, Wanted: []string{"w-1", "w-2"}},
			health.DrainVerdict{Go: []string{"w-1"}, Wait: []string{"w-2"}, Out: 2, Limit: 2},
		},
		"a worker that is out and wanted may stay": {
			health.DrainBudget{Limit: two, Workers: 9, Out: []string{"w-7", "w-8"}, Wanted: []string{"w-1", "w-8"}},
			health.DrainVerdict{Go: []string{"w-8"}, Wait: []string{"w-1"}, Out: 2, Limit: 2},
		},
		"nobody comes back when others have drained more than the limit": {
			health.DrainBudget{Limit: two, Workers: 9, Out: []string{"w-6", "w-7", "w-8"}, Wanted: []string{"w-1", "w-6"}},
			health.DrainVerdict{Go: []string{"w-6"}, Wait: []string{"w-1"}, Out: 3, Limit: 2},
		},
		"a node that is named twice counts once": {
			health.DrainBudget{Limit: two, Workers: 9, Out: []string{"w-7", "w-7"}, Wanted: []string{"w-1", "w-1"}},
			health.DrainVerdict{Go: []string{"w-1"}, Out: 2, Limit: 2},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, c.budget.Decide()); diff != "" {
				t.Errorf("(-want, +got):\n%s", diff)
			}
		})
	}
}

func TestWhoIsOutForACheck(t *testing.T) {
	for name, c := range map[string]struct {
		state, reason string
		want          bool
	}{
		"a check has drained the node":                   {"IDLE DRAIN", "[node_problem] gpu: XID 79", true},
		"the ephemeral storage of the pod is full":       {"MIXED DRAIN", "[user_problem] pod_ephemeral_storage 90 %", true},
		"the machine is to be replaced":                  {"IDLE DRAIN", node.MaintenanceReason + ": T", false},
		"a person has drained the node":                  {"IDLE DRAIN", "bad disk", false},
		"the node is cordoned":                           {"IDLE DRAIN", "slurm-operator: Node was cordoned", false},
		"the reason of a check is left over":             {"IDLE", "[node_problem] gpu: XID 79", false},
		"nobody knows whether the check drains the node": {"", "[node_problem] gpu: XID 79", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := health.OutForCheck(node.Parse(strings.Fields(c.state)), node.Reason{Text: c.reason}); got != c.want {
				t.Error(got)
			}
		})
	}
}

// TestTheDisruptionBudgetIsNeverExceeded takes random steps: checks fail and pass, workers come and go, and others drain whom they like.
func TestTheDisruptionBudgetIsNeverExceeded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := health.DrainLimit{Number: rapid.IntRange(1, 100).Draw(t, "limit"), Percent: rapid.Bool().Draw(t, "percent")}
		workers := rapid.IntRange(1, 40).Draw(t, "workers")
		out, wanted := map[string]bool{}, map[string]bool{}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			name := fmt.Sprintf("w-%d", rapid.IntRange(0, workers-1).Draw(t, "node"))
			switch rapid.SampledFrom([]string{"fails", "passes", "drained by others", "scaled"}).Draw(t, "step") {
			case "fails":
				wanted[name] = true
			case "passes":
				delete(wanted, name)
				delete(out, name)
			case "drained by others":
				out[name] = true
			case "scaled":
				workers = rapid.IntRange(1, 40).Draw(t, "workers")
			}
			before := len(out)
			d := health.DrainBudget{Limit: limit, Workers: workers, Out: keys(out), Wanted: keys(wanted)}.Decide()
			for _, n := range d.Go {
				out[n] = true
			}
			if len(out) > max(before, limit.Of(workers)) || d.Out != len(out) {
				t.Fatalf("%d of %d are out with limit %s, %d were; it says %d", len(out), workers, limit, before, d.Out)
			}
			if len(d.Go)+len(d.Wait) != len(wanted) {
				t.Fatalf("%v go, %v wait, of %v", d.Go, d.Wait, wanted)
			}
			if len(d.Wait) > 0 && len(out) < limit.Of(workers) {
				t.Fatalf("%v wait although only %d of %d are out", d.Wait, len(out), limit.Of(workers))
			}
		}
	})
}

func keys(of map[string]bool) []string {
	out := make([]string, 0, len(of))
	for name := range of {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}
