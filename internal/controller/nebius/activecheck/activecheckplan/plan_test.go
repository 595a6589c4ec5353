// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package activecheckplan

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"pgregory.net/rapid"

	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

func TestANodeIsDrainedOnceAndByNobodyElsesReason(t *testing.T) {
	const failing = slurm + `, failureReactions: {drainSlurmNode: true, addReservation: {prefix: s}}`
	for name, test := range map[string]struct {
		nodes string
		want  string
	}{
		"a node is idle":                           {nodes: "a:IDLE", want: "drain a, reserve s-a"},
		"a node is down":                           {nodes: "a:DOWN", want: "drain a, reserve s-a"},
		"a node drains already":                    {nodes: "a:IDLE+DRAIN", want: "reserve s-a; node a drains already"},
		"Slurm does not say whether a node drains": {nodes: "a:UNKNOWN", want: "reserve s-a; Slurm does not say whether node a drains"},
		"a node is gone":                           {nodes: "b:IDLE", want: "; node a does not exist any more"},
		"the only node is gone":                    {nodes: "", want: "; node a does not exist any more"},
	} {
		t.Run(name, func(t *testing.T) {
			job := aRun(t, "annotations: {slurm-job-id: \"17\"}")
			f := RunInput{RunFacts: RunFacts{Job: job, Now: began}, Ended: []EndedJob{{CheckedJob: CheckedJob{ID: "17", State: "FAILED", Nodes: []string{"a"}}}}}
			if test.nodes != "" {
				f.Nodes = nodesOf(test.nodes)
			}
			plan := PlanRun(input(t, failing), false, f)
			var did []string
			for _, r := range plan.Conclusions[0].Reactions {
				if r.Drain != "" {
					did = append(did, "drain "+r.Node)
				}
				if r.AddReservation != "" {
					did = append(did, "reserve "+r.AddReservation)
				}
			}
			got := strings.Join(did, ", ")
			if left := plan.Conclusions[0].Left; len(left) > 0 {
				got += "; " + strings.Join(left, "; ")
			}
			if got != test.want || plan.Record.Ended["17"].State != "FAILED" {
				t.Errorf("%q, want %q; noted is %v", got, test.want, plan.Record.Ended)
			}
		})
	}
}

func TestACheckWithMistakesSubmitsNothing(t *testing.T) {
	f := RunInput{RunFacts: RunFacts{Job: aRun(t, ""), Now: began, Reachable: true, Known: true}}
	if plan := PlanRun(input(t, slurm), true, f); plan.Step != StepWait || !LookAgain(plan).Equal(began.Add(time.Minute)) {
		t.Errorf("%s, again at %s", plan.Step, LookAgain(plan))
	}
	if plan := PlanRun(input(t, slurm), false, f); plan.Step != StepSubmit || len(plan.Submit) != 1 {
		t.Errorf("%s with %d jobs", plan.Step, len(plan.Submit))
	}
	f.Refused = "no such partition"
	if plan := PlanRun(input(t, slurm), false, f); len(plan.Submit) > 0 || !plan.Record.Submitted || plan.Record.Refused == "" {
		t.Errorf("a job that is refused is submitted again: %+v", plan)
	}
	f.Now = began.Add(time.Hour)
	if plan := PlanRun(input(t, slurm), false, f); plan.Step != StepGiveUp || result(plan.Record) != nebiusv1alpha1.SlurmRunError {
		t.Errorf("after the deadline: %+v", plan)
	}
}

// world is a run with a Slurm and an operator that may stop after any write.
type world struct {
	t     *rapid.T
	in    Input
	job   *batchv1.Job
	nodes []rest.Node
	now   time.Time
	// slurm are the jobs that Slurm has, and ended how they ended.
	slurm map[string]string // node by number
	ended map[string]string
	last  int64
	// known is the memory of the operator.
	known    bool
	there    []SubmittedJob
	writes   int // that are left before the operator stops
	drains   map[string]int
	reacted  map[string]bool
	maximum  int
	reaching bool
}

// write reports whether the operator still runs to make a write.
func (w *world) write() bool { w.writes--; return w.writes >= 0 }

// pass is one pass of the operator. It stops after some writes, and forgets everything afterwards.
func (w *world) pass(writes int) {
	w.writes = writes
	w.carryOut()
	if w.writes < 0 {
		w.known, w.there = false, nil
	}
}

func (w *world) carryOut() {
	f := RunInput{RunFacts: RunFacts{Job: w.job, Now: w.now, Reachable: w.reaching, Known: w.known}, Nodes: w.nodes, There: slices.Clone(w.there)}
	if NextStep(f.RunFacts) == StepFind {
		for _, id := range slices.Sorted(maps.Keys(w.slurm)) {
			f.There = append(f.There, SubmittedJob{ID: id, Nodes: []string{w.slurm[id]}})
		}
		f.Known, w.known, w.there = true, true, slices.Clone(f.There)
	}
	if NextStep(f.RunFacts) == StepFollow && w.reaching {
		for _, id := range ReadRecord(w.job.Annotations).Open() {
			if state := w.ended[id]; state != "" {
				f.Ended = append(f.Ended, EndedJob{CheckedJob: CheckedJob{ID: id, State: state, Nodes: []string{w.slurm[id]}}})
			}
		}
	}
	plan := PlanRun(w.in, false, f)
	switch plan.Step {
	case StepBegin:
		if w.write() {
			w.job.Status = RunStatus(w.job, plan.Record, w.now)
			w.known = w.writes > 0
		}
		return
	case StepSubmit, StepGiveUp:
		for _, s := range plan.Submit {
			if !w.write() {
				return
			}
			w.last++
			id := decimal(w.last)
			w.slurm[id] = s.Nodes[0]
			w.there = append(w.there, SubmittedJob{ID: id, Nodes: s.Nodes})
			plan.Record.IDs = append(plan.Record.IDs, id)
		}
	case StepFollow:
		for _, c := range plan.Conclusions {
			for _, r := range c.Reactions {
				if !w.write() {
					return
				}
				w.drains[c.Job.ID]++
				at := slices.IndexFunc(w.nodes, func(n rest.Node) bool { return n.Name == r.Node })
				w.nodes[at].State = []string{"IDLE", "DRAIN"}
			}
			w.reacted[c.Job.ID] = true
		}
	default:
		return
	}
	if w.write() {
		w.job.Annotations = plan.Record.Annotations()
	} else {
		return
	}
	if w.write() {
		w.job.Status = RunStatus(w.job, plan.Record, w.now)
	}
}

func TestNoJobIsSubmittedTwiceAndNoneIsReactedToTwice(t *testing.T) {
	in, job := input(t, slurm+`, failureReactions: {drainSlurmNode: true}`), aRun(t, "")
	rapid.Check(t, func(t *rapid.T) {
		w := &world{
			t: t, in: in, job: job.DeepCopy(), nodes: nodesOf("a:IDLE", "b:IDLE", "c:IDLE", "d:IDLE"),
			now: began, slurm: map[string]string{}, ended: map[string]string{}, drains: map[string]int{}, reacted: map[string]bool{}, reaching: true,
			maximum: rapid.IntRange(0, 4).Draw(t, "maximum"),
		}
		w.in.Check = in.Check.DeepCopy()
		w.in.Check.Spec.SlurmJobSpec.EachWorkerJobs, w.in.Check.Spec.SlurmJobSpec.MaxNumberOfJobs = true, int64(w.maximum)
		w.job.Status.StartTime = nil
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch rapid.IntRange(0, 7).Draw(t, "what") {
			case 0, 1, 2:
				w.pass(rapid.IntRange(0, 8).Draw(t, "writes"))
			case 3:
				w.pass(100)
			case 4:
				for id := range w.slurm {
					if w.ended[id] == "" && rapid.Bool().Draw(t, "ends") {
						w.ended[id] = rapid.SampledFrom([]string{"COMPLETED", "FAILED", "NODE_FAIL", "CANCELLED", "TIMEOUT"}).Draw(t, "state")
					}
				}
			case 5:
				w.reaching = !w.reaching
			case 6:
				n := rapid.IntRange(0, 3).Draw(t, "node") // somebody drains it
				w.nodes[n].State = []string{"IDLE", "DRAIN"}
			case 7:
				w.now = w.now.Add(20 * time.Second)
			}
			w.check()
		}
		// In the end everything is followed.
		w.reaching = true
		for range 6 {
			w.pass(100)
			for id := range w.slurm {
				if w.ended[id] == "" {
					w.ended[id] = "FAILED"
				}
			}
		}
		w.check()
		if !Over(w.job) {
			t.Fatalf("the run does not end: %v %+v", w.job.Annotations, w.job.Status)
		}
		for _, id := range ReadRecord(w.job.Annotations).IDs {
			if !w.reacted[id] {
				t.Fatalf("job %s was not reacted to", id)
			}
		}
	})
}

// check checks what must never be.
func (w *world) check() {
	nodes := map[string]string{}
	for id, name := range w.slurm {
		if nodes[name] != "" {
			w.t.Fatalf("jobs %s and %s are both on %s", nodes[name], id, name)
		}
		nodes[name] = id
	}
	if w.maximum > 0 && len(w.slurm) > w.maximum {
		w.t.Fatalf("%d jobs, at most %d are allowed", len(w.slurm), w.maximum)
	}
	for id, n := range w.drains {
		if n > 1 || w.ended[id] != "FAILED" {
			w.t.Fatalf("%d drains for job %s, which is %q", n, id, w.ended[id])
		}
	}
}
