// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package activecheck

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

// expectForgotten looks at a check that is gone: whatever happens to its jobs, nothing follows, and nothing is left of it.
func (w *world) expectForgotten(ids ...int64) {
	w.t.Helper()
	w.pass() // the deletion is an event, after which the check is looked at
	for check, known := range w.r.memory.checks.All() {
		w.t.Errorf("this process remembers %v of %s", known, check)
	}
	if status := w.r.budgets.Of(set()); len(status.Waiting) > 0 {
		w.t.Errorf("the disruption budget is %+v", status)
	}
	w.told("")
	drains, asked := w.drains(), w.asked()
	for _, id := range ids {
		w.slurm.Fail(id, 1)
	}
	w.passes()
	if got := w.drains(); !slices.Equal(got, drains) {
		w.t.Errorf("drains were %q, and are %q", drains, got)
	}
	if events, any := w.told(""); any {
		w.t.Errorf("told is %q", events)
	}
	if got := w.asked(); got != asked {
		w.t.Errorf("Slurm was asked %d times for jobs that nobody waits for", got-asked)
	}
}

func TestACheckThatIsDeletedIsForgotten(t *testing.T) {
	t.Run("a check is forgotten while its jobs run", func(t *testing.T) {
		simulate(t, func(w *world) {
			w.passes()
			ids := w.submitted()
			if len(ids) != 2 || w.asked() == 0 {
				t.Fatalf("the jobs are %v, and Slurm was asked %d times for jobs", ids, w.asked())
			}
			w.delete()
			w.expectForgotten(ids...)
		})
	})
	t.Run("a check is forgotten before its run has begun", func(t *testing.T) {
		simulate(t, func(w *world) {
			w.delete()
			w.expectForgotten()
			if writes := w.slurm.Writes(); len(writes) > 0 {
				t.Errorf("Slurm was told %v", writes)
			}
		})
	})
	t.Run("a check is forgotten while a job is being submitted", func(t *testing.T) {
		simulate(t, func(w *world) {
			deleted := false
			w.slurm.SetFault(func(r *http.Request) *fake.Fault {
				if strings.HasSuffix(strings.TrimSuffix(r.URL.Path, "/"), "job/submit") && !deleted {
					deleted = true
					w.delete()
				}
				return nil
			})
			for range 3 { // begins, submits
				w.pass()
			}
			if !deleted {
				t.Fatal("nothing was submitted")
			}
			w.expectForgotten(w.submitted()...)
		})
	})
	t.Run("a check is forgotten while a node waits for the disruption budget", func(t *testing.T) {
		simulate(t, func(w *world) {
			w.passes()
			for _, id := range w.submitted() {
				w.slurm.Fail(id, 1)
			}
			w.passes()
			if status := w.r.budgets.Of(set()); len(status.Waiting) != 1 || len(w.drains()) != 1 {
				t.Fatalf("the disruption budget is %+v, and drained %q", status, w.drains())
			}
			w.delete()
			w.expectForgotten()
		})
	})
	t.Run("a check is forgotten while a node is being drained", func(t *testing.T) {
		simulate(t, func(w *world) {
			w.passes()
			ids := w.submitted()
			deleted := false
			w.slurm.SetFault(func(r *http.Request) *fake.Fault {
				if r.Method == http.MethodPost && strings.Contains(r.URL.Path, "/node") && !deleted {
					deleted = true
					w.delete()
				}
				return nil
			})
			w.slurm.Fail(ids[0], 1)
			w.passes()
			if !deleted {
				t.Fatal("nothing was drained")
			}
			w.expectForgotten(ids[1])
		})
	})
}

// The check is deleted and made anew at once, so that no pass sees that it is away.
func TestACheckThatIsMadeAnewHasNoneOfTheRunsBefore(t *testing.T) {
	simulate(t, func(w *world) {
		w.passes()
		before := w.submitted()
		for _, id := range before {
			w.slurm.Fail(id, 1)
		}
		w.passes()
		if status := w.r.budgets.Of(set()); len(status.Waiting) != 1 {
			t.Fatalf("the disruption budget is %+v", status)
		}
		w.delete()
		check, job := aCheck(t, "second")
		if err := w.client.Create(t.Context(), check); err != nil {
			t.Fatal(err)
		}
		w.pass()
		known := w.r.memory.checks.Get(gpu())
		if status := w.r.budgets.Of(set()); len(status.Waiting) > 0 || known.check != "second" || len(known.runs) > 0 {
			t.Errorf("the disruption budget is %+v, and remembered is %+v", status, known)
		}
		if err := w.client.Create(t.Context(), job); err != nil {
			t.Fatal(err)
		}
		w.passes()
		if _, ok := w.r.memory.get(gpu(), job.UID); !ok {
			t.Error("the run of the new check is not known")
		}
	})
}

// Its jobs are in a cluster that the check does not belong to any more.
func TestACheckOfAnotherClusterFollowsNoJobsOfTheOneBefore(t *testing.T) {
	for name, spec := range map[string]string{
		"another cluster":            `{"spec": {"slurmClusterRefName": "other"}}`,
		"a check without Slurm jobs": `{"spec": {"checkType": "k8sJob"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, func(w *world) {
				w.passes()
				ids := w.submitted()
				check, _ := aCheck(t, "first")
				if err := w.client.Patch(t.Context(), check, mergePatch(spec)); err != nil {
					t.Fatal(err)
				}
				w.pass()
				asked := w.asked()
				for _, id := range ids {
					w.slurm.Fail(id, 1)
				}
				w.passes()
				if got := w.asked(); got != asked || len(w.drains()) > 0 {
					t.Errorf("Slurm was asked %d times for jobs, and drained is %q", got-asked, w.drains())
				}
			})
		})
	}
}
