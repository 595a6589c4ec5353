// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package workerplan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/controller/worker/workerplan"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

// A job is COMPLETING until its processes and its epilog have ended, which may take for ever. Its time limit does not bound that.
func TestAWorkerSaysThatItWaitsForAJobThatIsCompleting(t *testing.T) {
	const since = ", COMPLETING on node w-1 since 2026-11-20T11:50:00Z: a process or the epilog has not ended"
	ends := workerplan.Job{ID: 812, User: "alice", End: noon.Add(-10 * time.Minute), Completing: true}
	runs := workerplan.Job{ID: 813, User: "bob", End: noon.Add(time.Hour)}
	for _, tt := range []struct {
		name, state string
		jobs        []workerplan.Job
		want        string
	}{
		{"a drained node says which job is completing", "IDLE DRAIN COMPLETING", []workerplan.Job{ends}, "job 812 of alice" + since},
		{"a node says which job is completing, also when its state still says that it has CPUs", "MIXED DRAIN COMPLETING", []workerplan.Job{ends}, "job 812 of alice" + since},
		{"a node with several jobs that are completing names one of them", "IDLE DRAIN COMPLETING", []workerplan.Job{ends, {ID: 814, Completing: true}}, "2 jobs, such as job 812 of alice" + since},
		{"a node says since when a job is completing while its jobs are not known", "IDLE DRAIN COMPLETING", nil, "jobs" + since},
		{"a node does not say that a job is completing while another one runs", "MIXED DRAIN COMPLETING", []workerplan.Job{ends, runs}, "2 jobs, the last of which is job 813 of bob, which ends no later than 2026-11-20T13:00:00Z"},
		{"a node does not say that a job is completing while another one may run", "MIXED DRAIN COMPLETING", nil, "jobs to end"},
		{"a node with a job that runs says when it ends", "ALLOCATED DRAIN", []workerplan.Job{runs}, "job 813 of bob, which ends no later than 2026-11-20T13:00:00Z"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := workerplan.Worker{
				Now:       noon,
				SlurmView: workerplan.SlurmView{SnapshotTime: noon, NodeListTime: noon, Registered: node.Yes, State: node.Parse(strings.Fields(tt.state)), Reason: node.Reason{Text: drainReason, At: noon.Add(-time.Hour)}, JobsKnown: node.AnswerOf(len(tt.jobs) > 0), Jobs: tt.jobs, Completing: noon.Add(-10 * time.Minute)},
				Slurm:     "w-1",
				Pod:       aPod(1, scaledIn),
				Host:      anUncordonedNode,
			}
			if len(tt.jobs) == 0 {
				w.JobsKnown = node.Unknown
			}
			got := workerplan.Next(w)
			if got.Shown.Message != "waiting for "+tt.want || !got.Shown.WaitsForJobs {
				t.Errorf("waits for jobs: %t, says %q", got.Shown.WaitsForJobs, got.Shown.Message)
			}
			completing := strings.HasSuffix(tt.want, since)
			if says := got.Shown.OutOfService.Message; strings.Contains(says, tt.want) != completing || strings.Contains(says, "jobs run there to their end") == completing {
				t.Errorf("out of service: %s", says)
			}
		})
	}
}
