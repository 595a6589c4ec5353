// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	"github.com/coxswain-hpc/coxswain/internal/controller/nebius/activecheck/activecheckplan"
	"github.com/coxswain-hpc/coxswain/internal/health"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

// aCheckedCluster has three workers, and what a check waits for.
const aCheckedCluster = `{metadata: {name: demo}, spec: {slurmNodes: {controller: {}, login: {size: 1}, rest: {enabled: true}, worker: {size: 3}}}}`

const (
	// checkRuns is how long a Slurm job of a check runs that succeeds.
	checkRuns = 20 * time.Second
	// checkFailed is how the reason of a drain for the failed check begins.
	checkFailed = "[hardware_problem] Failed gpu: job "
	// foreignReason is the reason of a person's drain.
	foreignReason = "bad disk"
	// submission is the path of the write by which a job is submitted.
	submission = "job/submit"
)

// aCheck runs a Slurm job on each worker, and drains those on which it fails.
const aCheck = `{metadata: {name: gpu}, spec: {name: gpu, slurmClusterRefName: demo, checkType: slurmJob,
  slurmJobSpec: {eachWorkerJobs: true, sbatchScript: "#!/bin/bash\nnvidia-smi -L\n"},
  failureReactions: {drainSlurmNode: {drainReasonPrefix: "[hardware_problem]"}}}}`

// checking are scenarios of checks that take workers out of service.
func checking() []scenario {
	two := health.DrainLimit{Number: 2}
	return []scenario{
		{name: "failed check", nodeSet: aCheckedCluster, sparse: 4, leaves: (*world).expectCheckedCluster, act: failedCheck},
		{name: "required check", nodeSet: aCheckedCluster, sparse: 6, anyEnd: true, leaves: (*world).expectGateOpen, act: requiredCheck},
		{name: "storm of failed checks", nodeSet: aCheckedCluster, sparse: 12, limit: two, leaves: (*world).expectStormOver, act: stormOfChecks},
		{name: "storm of full disks", nodeSet: fourLimitedWorkers, sparse: 4, limit: two, storage: true, leaves: (*world).expectNoneOut, act: stormOfDisks, besides: silentKubelets()},
	}
}

// failedCheck is a check that fails on one of three workers, while jobs run. A person has drained the third before.
func failedCheck(w *world) {
	w.drainBy("root", "worker-2", foreignReason)
	var jobs []int64
	for _, name := range []string{"worker-0", "worker-1"} {
		jobs = append(jobs, w.slurm.Submit(fake.Job{NodeList: []string{name}, CPUs: 1, Duration: 3 * time.Minute}))
	}
	w.broken.Store("worker-1", true)
	w.sleep(10 * time.Second)
	create[nebiusv1alpha1.ActiveCheck](w, aCheck)
	w.awaitRun("gpu-initial-run")
	w.sleep(4 * time.Minute)
	for _, id := range jobs {
		w.expectUsersJob(id)
	}
}

// stormOfChecks is a check that fails on all workers. The disruption budget lets two of them go. When these are repaired, a later run finds the third.
func stormOfChecks(w *world) {
	job := w.slurm.Submit(fake.Job{NodeList: []string{"worker-2"}, CPUs: 1, Duration: 4 * time.Minute})
	for _, name := range []string{"worker-0", "worker-1", "worker-2"} {
		w.broken.Store(name, true)
	}
	create[nebiusv1alpha1.ActiveCheck](w, aCheck)
	w.awaitRun("gpu-initial-run")
	w.expectOut("worker-0", "worker-1")
	w.repair()
	w.runByHand("gpu-later")
	w.expectOut("worker-2")
	w.repair()
	w.sleep(time.Minute)
	w.expectUsersJob(job)
	w.expectRun("gpu-later")
	remove[nebiusv1alpha1.ActiveCheck](w, "gpu") // which may wait for the disruption budget until its next run
}

// checkScript returns what the script of a check does on a node. Where it fails it takes longer, so that it ends after the others.
func (w *world) checkScript(job fake.Job) (runs time.Duration, exitCode int64) {
	for _, name := range job.NodeList {
		if _, broken := w.broken.Load(name); broken {
			return 2 * checkRuns, 1
		}
	}
	return checkRuns, 0
}

// awaitRun waits until a Job of the check is over. A Slurm job whose node has been drained by a person waits, and a person cancels it.
func (w *world) awaitRun(name string) {
	for began := time.Now(); time.Since(began) < patience; w.sleep(time.Second) {
		if job, there := get[batchv1.Job](w, name); there && activecheckplan.Over(job) {
			return
		}
		for id := int64(1); id < 100 && time.Since(began) > 90*time.Second; id++ {
			if status, known := w.slurm.Job(id); known && status.User == slurmcache.ChecksUser && slices.Contains(status.State, "PENDING") {
				w.slurm.Cancel(id)
			}
		}
	}
	job, there := get[batchv1.Job](w, name)
	w.fail("a run ends", "there is Job %s: %t; %+v", name, there, job.Status)
}

// runByHand runs the check once more, as "kubectl create job --from=cronjob/gpu" does.
func (w *world) runByHand(name string) {
	cron, there := get[batchv1.CronJob](w, "gpu")
	if !there {
		w.fail("a check has a CronJob", "there is none")
		return
	}
	template := cron.Spec.JobTemplate
	job := &batchv1.Job{Spec: template.Spec, ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, Labels: template.Labels,
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(cron, batchv1.SchemeGroupVersion.WithKind("CronJob"))},
	}}
	w.touch()
	if err := w.user.Create(w.ctx, job); err != nil {
		w.t.Errorf("creating Job %s: %v", name, err)
		return
	}
	w.awaitRun(name)
}

// repair repairs the workers that are out of service for a check, and resumes their nodes, as soon as slurmctld is there.
func (w *world) repair() {
	w.sleep(time.Minute)
	for _, name := range w.out() {
		w.broken.Delete(name)
		for range 300 {
			if w.slurm.Update("root", name, "RESUME", "") == nil {
				break
			}
			w.sleep(time.Second)
		}
	}
	w.touch()
	w.sleep(lie + 10*time.Second) // until the operator knows
}

// out returns the Slurm nodes that are out of service for checks.
func (w *world) out() (names []string) {
	for _, name := range w.slurm.Names() {
		if status, known := w.slurm.Node(name); known && health.OutForCheck(node.Parse(status.State), node.Reason{Text: status.Reason}) {
			names = append(names, name)
		}
	}
	return names
}

// expectOut checks which workers are out of service for checks, unless a fault may have changed that.
func (w *world) expectOut(want ...string) {
	if got := w.out(); w.undisturbed() && !slices.Equal(got, want) {
		w.fail("the disruption budget lets as many go as may", "%v are out of service, want %v", got, want)
	}
}

// expectNoneOut checks that every node comes back.
func (w *world) expectNoneOut() {
	for _, name := range w.out() {
		status, _ := w.slurm.Node(name)
		w.fail("every node comes back", "%s is %v: %s", name, status.State, status.Reason)
	}
}

// judgeDrainBudget checks that checks never take more workers out of service than they may, whatever becomes of the answer to a write.
func (w *world) judgeDrainBudget(c call) {
	if out, limit := w.out(), w.limit.Of(len(w.slurm.Names())); len(out) > limit {
		w.fail("the disruption budget is never exceeded", "%s: %v are out of service for checks, and %d may be", c.label(), out, limit)
	}
}

// expectUsersJob checks that a job of a user ran once, to its end. A slurmctld that has lost its state has other jobs of these numbers.
func (w *world) expectUsersJob(id int64) {
	w.mu.Lock()
	emptied := w.emptied
	w.mu.Unlock()
	status, known := w.slurm.Job(id)
	if !emptied && (!known || !slices.Contains(status.State, "COMPLETED") || status.Restarts > 0) {
		w.fail("no job of a user is lost", "job %d is %v, and was requeued %d times", id, status.State, status.Restarts)
	}
}

// expectCheckedCluster checks what is left of a failed check, whatever went wrong: every drain is that of a person, or of the worker on
// which the check has failed; that worker is drained; and the status of the run is that of its jobs.
func (w *world) expectCheckedCluster() {
	w.mu.Lock()
	emptied := w.emptied
	w.mu.Unlock()
	for _, name := range w.slurm.Names() {
		status, _ := w.slurm.Node(name)
		failed := w.failedOn(name)
		switch ofCheck := strings.HasPrefix(status.Reason, checkFailed); {
		case emptied: // its drains and its jobs are gone
		case name == "worker-2" && status.Reason != foreignReason:
			w.fail("a drain of a person stays", "%s is %v: %s", name, status.State, status.Reason)
		case ofCheck && (name != "worker-1" || !strings.HasSuffix(status.Reason, node.SlurmJobSuffix)):
			w.fail("only the broken worker is drained", "%s is %v: %s", name, status.State, status.Reason)
		case failed && !ofCheck && status.Reason != foreignReason, failed && node.Parse(status.State).Drain() != node.Yes:
			w.fail("the broken worker is drained", "%s is %v: %s", name, status.State, status.Reason)
		}
	}
	w.expectRun("gpu-initial-run")
	if w.undisturbed() && !slices.Equal(w.out(), []string{"worker-1"}) {
		w.fail("the broken worker is drained", "%v are out of service", w.out())
	}
}

// failedOn reports whether slurmctld has a job of a check that has failed on a node.
func (w *world) failedOn(name string) bool {
	for id := int64(1); id < 100; id++ {
		status, known := w.slurm.Job(id)
		if known && status.User == slurmcache.ChecksUser && slices.Contains(status.State, "FAILED") && slices.Contains(status.Nodes, name) {
			return true
		}
	}
	return false
}

// expectRun checks that a Job is over, and its status has the Slurm jobs that it has recorded. Then the check has the same.
func (w *world) expectRun(name string) {
	job, there := get[batchv1.Job](w, name)
	if !there || !activecheckplan.Over(job) {
		w.fail("a run ends", "there is Job %s: %t; %+v", name, there, job.Status)
		return
	}
	record := activecheckplan.ReadRecord(job.Annotations)
	if open := record.Open(); len(open) > 0 {
		w.fail("a run ends", "%s is over, and its Slurm jobs %v are not", name, open)
	}
	failed := 0
	for _, id := range record.IDs {
		if record.Ended[id].State == "FAILED" {
			failed++
		}
	}
	check, _ := get[nebiusv1alpha1.ActiveCheck](w, "gpu")
	status := check.Status.SlurmJobsStatus
	if status == nil || failed > 0 != (status.LastRunStatus == nebiusv1alpha1.SlurmRunFailed) {
		w.fail("a check says how its run was", "%d Slurm jobs have failed, %+v", failed, status)
	}
	if w.undisturbed() && failed != 1 {
		w.fail("a check says how its run was", "%+v", record)
	}
}

// expectStormOver checks that no worker is out of service, and that the cluster is available.
func (w *world) expectStormOver() {
	w.expectNoneOut()
	if c, _ := get[nebiusv1.SlurmCluster](w, "demo"); c.Status.Phase != nebiusv1.PhaseAvailable {
		w.fail("the cluster is available", "%+v", c)
	}
}

// otherJobs reports whether the runs of checks have other Slurm jobs than in the reference, so that the end differs. A job that Slurm has
// refused is not submitted again: docs/users/activecheck.md. And two leaders may both submit the job of a node, and only one is followed.
func otherJobs(f fault, calls []call) bool {
	first := map[string]*process{}
	return slices.ContainsFunc(calls, func(c call) bool {
		switch {
		case c.path != submission:
			return false
		case !c.applied:
			return c.code == http.StatusOK || c.code == http.StatusInternalServerError
		}
		before := first[c.requiredNodes()]
		first[c.requiredNodes()] = c.process
		return f.name == twoLeaders && before != nil && before != c.process
	})
}

// requiredNodes returns the nodes that a job must have that is submitted.
func (c call) requiredNodes() string {
	var body struct {
		Job struct {
			Nodes []string `json:"required_nodes"`
		} `json:"job"`
	}
	if err := json.Unmarshal(c.body, &body); err != nil {
		return fmt.Sprintf("%q: %v", c.body, err)
	}
	return strings.Join(body.Job.Nodes, ",")
}
