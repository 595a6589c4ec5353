// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package activecheck

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	"github.com/coxswain-hpc/coxswain/internal/controller/nebius/activecheck/activecheckplan"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

// startSlurm starts the operator with a SlurmCluster of two workers that is available, and returns the names of their Slurm nodes.
func startSlurm(t *testing.T) (*operator.Operator, []string) {
	t.Helper()
	o := operator.Start(t)
	operator.Create[nebiusv1.SlurmCluster](o, `{metadata: {name: demo}, spec: {slurmNodes: {worker: {size: 2}, login: {size: 1}, rest: {enabled: true}}}}`)
	apiserver.Eventually(t, func() error {
		o.RunWorkloads()
		if n := len(o.Workers()); n != 2 {
			return fmt.Errorf("there are %d workers", n)
		}
		return nil
	})
	for _, p := range o.Workers() { // whose slurmd does not know of partition hidden in this world
		o.Slurm.Register(fake.Node{Name: p.Spec.Hostname, CPUs: 4, RealMemory: 24000, Partitions: []string{"main", "hidden"}})
	}
	awaitPhase(o, t)
	o.Settle()
	return o, o.Slurm.Names()
}

// slurmCheck makes a check of Slurm jobs.
func slurmCheck(o *operator.Operator, name, spec string) {
	operator.Create[nebiusv1alpha1.ActiveCheck](o, `{metadata: {name: `+name+`}, spec: {slurmClusterRefName: demo, checkType: slurmJob, `+spec+`}}`)
}

const (
	onEachWorker = `slurmJobSpec: {eachWorkerJobs: true, sbatchScript: "#!/bin/bash\ntrue\n", jobContainer: {env: [{name: A, value: b}]}}`
	drains       = `failureReactions: {drainSlurmNode: {drainReasonPrefix: "[node_problem]"}, addReservation: {prefix: suspicious}}, successReactions: {removeReservation: {prefix: suspicious}}`
)

// submissions returns the jobs that were submitted: "name on nodes".
func submissions(o *operator.Operator) (out []string) {
	for _, w := range o.Slurm.Writes() {
		if w.Verb == "submit" {
			out = append(out, w.Name+" on "+w.Nodes+" by "+w.User)
		}
	}
	return out
}

// jobsOf waits until the Slurm jobs of a Kubernetes Job are submitted, and returns their numbers.
func jobsOf(t *testing.T, o *operator.Operator, name string, n int) (ids []int64) {
	t.Helper()
	apiserver.Eventually(t, func() error {
		job := operator.Get[batchv1.Job](o, name)
		ids = nil
		record := activecheckplan.ReadRecord(job.Annotations)
		for _, id := range record.IDs {
			var number int64
			if _, err := fmt.Sscan(id, &number); err != nil {
				return err
			}
			ids = append(ids, number)
		}
		if !record.Submitted || len(ids) != n || int(job.Status.Active) != n {
			return fmt.Errorf("want %d jobs: %+v, %d active, %+v", n, record, job.Status.Active, job.Status.Conditions)
		}
		return nil
	})
	return ids
}

// expectRun waits until a check shows this of its last run.
func expectRun(t *testing.T, o *operator.Operator, name string, status nebiusv1alpha1.SlurmRunStatus, ok func(*nebiusv1alpha1.SlurmJobsStatus) bool) {
	t.Helper()
	apiserver.Eventually(t, func() error {
		last := operator.Get[nebiusv1alpha1.ActiveCheck](o, name).Status.SlurmJobsStatus
		if last == nil || last.LastRunStatus != status || ok != nil && !ok(last) {
			return fmt.Errorf("%s says %+v, want %s", name, last, status)
		}
		return nil
	})
}

// expectEnd waits until a Kubernetes Job has this end.
func expectEnd(t *testing.T, o *operator.Operator, name string, kind batchv1.JobConditionType, reason string) {
	t.Helper()
	apiserver.Eventually(t, func() error {
		job := operator.Get[batchv1.Job](o, name)
		for _, c := range job.Status.Conditions {
			if c.Type == kind && c.Reason == reason && job.Status.Active == 0 {
				return nil
			}
		}
		return fmt.Errorf("want %s for %s: %+v", kind, reason, job.Status)
	})
}

func TestACheckOfSlurmJobsRunsOnEachWorker(t *testing.T) {
	t.Parallel()
	o, nodes := startSlurm(t)
	slurmCheck(o, "gpu", "suspend: false, "+onEachWorker+", "+drains)
	ids := jobsOf(t, o, "gpu-initial-run", 2)
	if got := submissions(o); !slices.Equal(got, []string{"gpu on " + nodes[0] + " by " + slurmcache.ChecksUser, "gpu on " + nodes[1] + " by " + slurmcache.ChecksUser}) {
		t.Errorf("submitted are %v", got)
	}
	expectRun(t, o, "gpu", nebiusv1alpha1.SlurmRunInProgress, func(s *nebiusv1alpha1.SlurmJobsStatus) bool {
		return s.LastRunID == fmt.Sprint(ids[0]) && s.LastRunName == "gpu" && s.LastRunSubmitTime != nil
	})
	apiserver.Eventually(t, func() error {
		c := operator.Get[batchv1.CronJob](o, "gpu")
		if by := c.Spec.JobTemplate.Spec.ManagedBy; *c.Spec.Suspend || by == nil || *by != activecheckplan.ManagedBy {
			return fmt.Errorf("%+v", c.Spec)
		}
		return nil
	})
	if message := operator.ExpectCondition[nebiusv1alpha1.ActiveCheck](o, "gpu", ready, metav1.ConditionTrue, "Available"); message != "CronJob gpu: runs by schedule 0 0 1 1 *" {
		t.Errorf("it says %q", message)
	}

	// The jobs end at different times. Each has its reaction.
	o.Slurm.Fail(ids[0], 1)
	reason := fmt.Sprintf("[node_problem] Failed gpu: job %d [slurm_job]", ids[0])
	apiserver.Eventually(t, func() error {
		if n, _ := o.Slurm.Node(nodes[0]); n.Reason != reason || !slices.Contains(n.State, "DRAIN") {
			return fmt.Errorf("%s is %v for %q", nodes[0], n.State, n.Reason)
		}
		if r := o.Slurm.Reservations(); len(r) != 1 || r[0].Name != "suspicious-"+nodes[0] || !slices.Equal(r[0].Flags, []string{"MAINT", "IGNORE_JOBS", "SPEC_NODES"}) {
			return fmt.Errorf("reservations are %+v", r)
		}
		return nil
	})
	expectRun(t, o, "gpu", nebiusv1alpha1.SlurmRunInProgress, func(s *nebiusv1alpha1.SlurmJobsStatus) bool {
		return slices.Equal(s.LastRunFailJobsAndReasons, []nebiusv1alpha1.JobAndReason{{JobID: fmt.Sprint(ids[0]), Reason: "NonZeroExitCode"}})
	})
	apiserver.Eventually(t, func() error {
		return toldAs(t, o, nebiusv1alpha1.ReasonCheckReaction, fmt.Sprintf("Slurm job %d is FAILED: drained node %s: %s; made reservation suspicious-%s", ids[0], nodes[0], reason, nodes[0]))
	})
	o.Slurm.Finish(ids[1])
	expectRun(t, o, "gpu", nebiusv1alpha1.SlurmRunFailed, nil)
	expectEnd(t, o, "gpu-initial-run", batchv1.JobFailed, "SlurmJobsFailed")
	apiserver.Eventually(t, func() error {
		return told(t, o, fmt.Sprintf("Job gpu-initial-run is Failed: Slurm job %d is FAILED; Slurm job %d is COMPLETED", ids[0], ids[1]))
	})

	// By hand: the node that drains is left out.
	byHand(t, o, "gpu", "mine")
	again := jobsOf(t, o, "mine", 1)
	o.Slurm.Finish(again[0])
	expectRun(t, o, "gpu", nebiusv1alpha1.SlurmRunComplete, func(s *nebiusv1alpha1.SlurmJobsStatus) bool { return s.LastRunID == fmt.Sprint(again[0]) })
	expectEnd(t, o, "mine", batchv1.JobComplete, "SlurmJobsCompleted")
	drained := 0
	for _, w := range o.Slurm.Writes() {
		if strings.Contains(fmt.Sprint(w.State), "DRAIN") {
			drained++
		}
	}
	if drained != 1 {
		t.Errorf("%d drains were written", drained)
	}
	o.Settle()
	o.ExpectNoErrors()
	o.Writes.Reset()
	o.Restart()
	o.Settle()
	o.Writes.ExpectNone(t)
	o.Slurm.ResetCounters()
	o.Settle()
	for call, n := range o.Slurm.Counters().Calls {
		if strings.Contains(call, "job") && n > 0 {
			t.Errorf("at rest %s was called %d times", call, n)
		}
	}

	// The other node is not drained as well, since checks may drain one of two.
	byHand(t, o, "gpu", "other")
	overBudget := jobsOf(t, o, "other", 1)
	o.Slurm.Fail(overBudget[0], 1)
	apiserver.Eventually(t, func() error {
		return toldAs(t, o, nebiusv1alpha1.ReasonCheckReaction, fmt.Sprintf("Slurm job %d is FAILED: made reservation suspicious-%s; node %s is not drained: "+
			"checks have already taken 1 of at most 1 workers of NodeSet demo-worker out of service (--max-nodes-drained-by-checks)", overBudget[0], nodes[1], nodes[1]))
	})
	expectEnd(t, o, "other", batchv1.JobFailed, "SlurmJobsFailed")
	if n, _ := o.Slurm.Node(nodes[1]); slices.Contains(n.State, "DRAIN") {
		t.Errorf("%s is drained: %s", nodes[1], n.Reason)
	}
}

func TestNothingIsSubmittedTwiceAfterARestart(t *testing.T) {
	t.Parallel()
	o, nodes := startSlurm(t)
	slurmCheck(o, "gpu", "runAfterCreation: false, "+onEachWorker)
	operator.ExpectCondition[nebiusv1alpha1.ActiveCheck](o, "gpu", ready, metav1.ConditionTrue, "Available")
	// Slurm takes the first job. Its answer is lost, and Slurm does not answer any more.
	o.Slurm.SetFault(func(r *http.Request) *fake.Fault {
		if r.Method == http.MethodPost && strings.HasSuffix(strings.TrimSuffix(r.URL.Path, "/"), "job/submit") {
			return &fake.Fault{Cut: true, Apply: true}
		}
		if strings.Contains(r.URL.Path, "/job") {
			return &fake.Fault{Status: http.StatusBadGateway}
		}
		return nil
	})
	byHand(t, o, "gpu", "mine")
	apiserver.Eventually(t, func() error {
		if len(submissions(o)) == 0 {
			return fmt.Errorf("nothing is submitted")
		}
		return nil
	})
	o.Restart()
	o.Slurm.SetFault(nil)
	ids := jobsOf(t, o, "mine", 2)
	got := submissions(o)
	slices.Sort(got)
	if want := []string{"gpu on " + nodes[0] + " by " + slurmcache.ChecksUser, "gpu on " + nodes[1] + " by " + slurmcache.ChecksUser}; !slices.Equal(got, want) {
		t.Errorf("submitted are %v", got)
	}
	// The operator is away while a job ends.
	o.Slurm.Finish(ids[0])
	o.Restart()
	o.Slurm.Cancel(ids[1])
	expectRun(t, o, "gpu", nebiusv1alpha1.SlurmRunCancelled, func(s *nebiusv1alpha1.SlurmJobsStatus) bool {
		return slices.Equal(s.LastRunCancelledJobs, []string{fmt.Sprint(ids[1])})
	})
}

func TestRunsThatGoWrongAreToldAndDrainNothing(t *testing.T) {
	t.Parallel()
	o, nodes := startSlurm(t)
	// A job that is cancelled proves nothing about its node.
	slurmCheck(o, "one", `slurmJobSpec: {sbatchScript: "#!/bin/bash\ntrue\n"}, `+drains)
	ids := jobsOf(t, o, "one-initial-run", 1)
	o.Slurm.Cancel(ids[0])
	expectRun(t, o, "one", nebiusv1alpha1.SlurmRunCancelled, nil)
	// A Job that is deleted leaves its Slurm job running.
	byHand(t, o, "one", "lost")
	ids = jobsOf(t, o, "lost", 1)
	o.Slurm.Lose(nodes...) // all, since the job may be on any
	expectRun(t, o, "one", nebiusv1alpha1.SlurmRunError, func(s *nebiusv1alpha1.SlurmJobsStatus) bool {
		return slices.Equal(s.LastRunErrorJobsAndReasons, []nebiusv1alpha1.JobAndReason{{JobID: fmt.Sprint(ids[0]), Reason: "NodeDown"}})
	})
	for _, name := range nodes {
		o.Slurm.Register(fake.Node{Name: name, CPUs: 4, RealMemory: 24000, Partitions: []string{"main", "hidden"}})
	}
	byHand(t, o, "one", "deleted")
	ids = jobsOf(t, o, "deleted", 1)
	expectRun(t, o, "one", nebiusv1alpha1.SlurmRunInProgress, func(s *nebiusv1alpha1.SlurmJobsStatus) bool { return s.LastRunID == fmt.Sprint(ids[0]) })
	if err := o.User.Delete(t.Context(), operator.Get[batchv1.Job](o, "deleted"), client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		t.Fatal(err)
	}
	expectRun(t, o, "one", nebiusv1alpha1.SlurmRunError, func(s *nebiusv1alpha1.SlurmJobsStatus) bool { return s.LastRunID == fmt.Sprint(ids[0]) })
	o.Slurm.Fail(ids[0], 1)
	// A job that Slurm refuses.
	operator.Create[nebiusv1alpha1.ActiveCheck](o, `{metadata: {name: refuses}, spec: {slurmClusterRefName: demo, checkType: slurmJob, runAfterCreation: false, slurmJobSpec: {sbatchScript: "#!/bin/bash\ntrue\n"}}}`)
	operator.ExpectCondition[nebiusv1alpha1.ActiveCheck](o, "refuses", ready, metav1.ConditionTrue, "Available")
	from := operator.Get[batchv1.CronJob](o, "refuses")
	job := &batchv1.Job{Spec: from.Spec.JobTemplate.Spec}
	job.Namespace, job.Name = o.Namespace, "refused"
	job.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(from, batchv1.SchemeGroupVersion.WithKind("CronJob"))}
	c := &job.Spec.Template.Spec.Containers[0]
	c.Env = append(c.Env, corev1.EnvVar{Name: "RESERVATION_NAME", Value: "absent"})
	if err := o.User.Create(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	expectRun(t, o, "refuses", nebiusv1alpha1.SlurmRunError, func(s *nebiusv1alpha1.SlurmJobsStatus) bool {
		return s.LastRunID == "No slurm job" && s.LastRunName == "refused"
	})
	expectEnd(t, o, "refused", batchv1.JobFailed, "SlurmJobsError")
	// A line that cannot be carried over.
	slurmCheck(o, "line", `slurmJobSpec: {sbatchScript: "#!/bin/bash\n#SBATCH --no-such-option\ntrue\n"}`)
	if message := operator.ExpectCondition[nebiusv1alpha1.ActiveCheck](o, "line", stalled, metav1.ConditionTrue, nebiusv1alpha1.ReasonInvalidSpec); !strings.Contains(message, "line 2: option --no-such-option is not supported") {
		t.Errorf("it says %q", message)
	}
	for _, name := range nodes {
		if n, _ := o.Slurm.Node(name); slices.Contains(n.State, "DRAIN") {
			t.Errorf("%s is drained: %s", name, n.Reason)
		}
	}
}

func TestARunGivesUpWhenSlurmIsAwayForTooLong(t *testing.T) {
	t.Parallel()
	o, _ := startSlurm(t)
	slurmCheck(o, "gpu", "runAfterCreation: false, activeDeadlineSeconds: 1, "+onEachWorker)
	operator.ExpectCondition[nebiusv1alpha1.ActiveCheck](o, "gpu", ready, metav1.ConditionTrue, "Available")
	o.Slurm.Stop()
	byHand(t, o, "gpu", "mine")
	expectRun(t, o, "gpu", nebiusv1alpha1.SlurmRunError, func(s *nebiusv1alpha1.SlurmJobsStatus) bool {
		return s.LastRunID == "No slurm job" && s.LastRunName == "mine"
	})
	expectEnd(t, o, "mine", batchv1.JobFailed, "SlurmJobsError")
	o.Slurm.Start(true)
	o.Settle()
	if got := submissions(o); len(got) > 0 {
		t.Errorf("submitted are %v", got)
	}
}

func TestARunAwaitsItsUser(t *testing.T) {
	t.Parallel()
	o, _ := startSlurm(t)
	var refused atomic.Int32
	o.Slurm.SetFault(func(r *http.Request) *fake.Fault {
		if strings.HasSuffix(r.URL.Path, "/job/submit") && refused.Add(1) <= 3 {
			return &fake.Fault{Status: http.StatusNetworkAuthenticationRequired, Body: "{}"}
		}
		return nil
	})
	slurmCheck(o, "early", `runAfterCreation: true, slurmJobSpec: {sbatchScript: "#!/bin/bash\ntrue\n"}`)
	apiserver.Eventually(t, func() error {
		if n := len(submissions(o)); n != 1 {
			return fmt.Errorf("%d jobs are submitted, and %d were refused", n, refused.Load())
		}
		return nil
	})
}

func TestAFailedSlurmJobCommentsOnItsNode(t *testing.T) {
	t.Parallel()
	o, nodes := startSlurm(t)
	slurmCheck(o, "gpu", `failureReactions: {commentSlurmNode: {commentPrefix: "look:"}}, `+onEachWorker)
	ids := jobsOf(t, o, "gpu-initial-run", 2)
	says := func(i int, want string) {
		t.Helper()
		apiserver.Eventually(t, func() error {
			n, _ := o.Slurm.Node(nodes[i])
			if c, ok := node.ParseComment(n.Comment); !ok || c.Check != want || c.PodName == "" {
				return fmt.Errorf("the comment of %s is %s, want %q in it", nodes[i], n.Comment, want)
			}
			return nil
		})
	}
	o.Slurm.Fail(ids[0], 1)
	says(0, fmt.Sprintf("look: Failed gpu: job %d [slurm_job]", ids[0]))
	o.Slurm.Finish(ids[1])
	expectRun(t, o, "gpu", nebiusv1alpha1.SlurmRunFailed, nil)
	says(1, "")
	if n, _ := o.Slurm.Node(nodes[0]); slices.Contains(n.State, "DRAIN") {
		t.Errorf("nobody has asked for a drain, and %s is %v", nodes[0], n.State)
	}
	o.ExpectNothingWritten(o.Restart)

	byHand(t, o, "gpu", "again")
	ids = jobsOf(t, o, "again", 2)
	o.Slurm.Finish(ids[0])
	o.Slurm.Finish(ids[1])
	expectRun(t, o, "gpu", nebiusv1alpha1.SlurmRunComplete, nil)
	says(0, "")
	o.ExpectNoErrors()
}
