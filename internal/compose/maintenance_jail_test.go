// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
)

// restingWithJail is a cluster with a jail, whose components and Job are played by the test.
type restingWithJail struct {
	resting
	// login and writers are numbers of pods that have the jail, besides the workers.
	login, writers int
	// wantsWriters is how many pods of sconfigcontroller there are to be.
	wantsWriters int
	// half is true when a Job has begun to exchange the files of the jail, and none has finished. The next one goes on with it, whatever
	// its mode.
	half bool
}

// pass composes the cluster and applies the result, as the reconciler does.
func (r *restingWithJail) pass() Output {
	c, seen := r.in.Cluster, &r.in.Observed
	seen.Populate.Users, seen.Populate.Writers = 0, 0
	if Overwrites(c, seen.Populate.Job) {
		seen.Populate.Users, seen.Populate.Writers = seen.Rest.Workers+r.login, r.writers
	}
	login, sets := seen.Rest.LoginSet, seen.NodeSets
	out := r.resting.pass()
	if out.Jail.Awaited { // they are left as they are
		seen.Rest.LoginSet, seen.NodeSets = login, sets
	}
	if out.Jail.Job == nil {
		seen.Populate.Job = jobIn(out)
	}
	r.wantsWriters = 0
	if writer := out.Components.SConfigController; writer != nil {
		r.wantsWriters = int(*writer.Spec.Replicas)
	}
	c.Status.Conditions = []metav1.Condition{*out.Jail.Condition, {Type: nebiusv1.ConditionPopulateJailMode, Reason: string(c.Spec.Maintenance)}}
	if overwritten := out.Jail.Overwritten; overwritten != nil {
		c.Status.Conditions = append(c.Status.Conditions, *overwritten)
	}
	return out
}

// step plays one of the controllers that work on the cluster.
func (r *restingWithJail) step(who int, end batchv1.JobConditionType) {
	switch login := r.in.Observed.Rest.LoginSet; {
	case who < 2, who == 2 && len(r.in.Observed.NodeSets) > 0:
		r.resting.step(who)
	case who == 3 && login != nil:
		r.login = int(login.Replicas())
	case who == 4:
		r.writers = r.wantsWriters
	case who == 5 && r.in.Observed.Populate.Job != nil && end != "":
		job := r.in.Observed.Populate.Job.DeepCopy()
		if !jobHas(job, batchv1.JobComplete) && !jobHas(job, batchv1.JobFailed) {
			job.Status.Conditions = []batchv1.JobCondition{{Type: end, Status: corev1.ConditionTrue}}
			r.half = r.half && end != batchv1.JobComplete
		}
		r.in.Observed.Populate.Job = job
	}
}

// end plays all controllers in a mode until nothing is left to do.
func (r *restingWithJail) end(mode nebiusv1.MaintenanceMode) (out Output) {
	r.mode(mode)
	for range 20 {
		out = r.pass()
		for who := range 6 {
			r.step(who, batchv1.JobComplete)
		}
		if jobHas(r.in.Observed.Populate.Job, batchv1.JobFailed) {
			r.in.Observed.Populate.Job = nil // an administrator has read the condition
		}
	}
	return out
}

// overwriting reports whether a Job is exchanging the files of the jail.
func (r *restingWithJail) overwriting() bool {
	job := r.in.Observed.Populate.Job
	runs := job != nil && !jobHas(job, batchv1.JobComplete) && !jobHas(job, batchv1.JobFailed)
	r.half = r.half || runs && runOf(job).Overwrites
	return runs && r.half
}

// TestNobodysJailIsOverwrittenWhateverTheMode changes modes, the image and the wish to overwrite at any time of a cluster's life.
// While a Job exchanges the files of the jail no pod has it; and in the end everything runs that should.
func TestNobodysJailIsOverwrittenWhateverTheMode(t *testing.T) {
	start := load(t).cluster(t, `{volumeSources: [{name: jail, nfs: {server: nas, path: /jail}}],
	  slurmNodes: {accounting: {enabled: true, embeddedDB: {enabled: true}}, controller: {volumes: {jail: {volumeSourceName: jail}}},
	    login: {size: 1, volumes: {jail: {volumeSourceName: jail}}}, worker: {size: 2, volumes: {jail: {volumeSourceName: jail}}}}}`)
	modes := rapid.SampledFrom([]nebiusv1.MaintenanceMode{
		nebiusv1.MaintenanceNone, nebiusv1.MaintenanceDownscale, nebiusv1.MaintenanceDownscaleAndDeletePopulateJail,
		nebiusv1.MaintenanceDownscaleAndOverwritePopulateJail, nebiusv1.MaintenanceSkipPopulateJail,
	})
	ends := rapid.SampledFrom([]batchv1.JobConditionType{"", "", batchv1.JobComplete, batchv1.JobFailed})
	rapid.Check(t, func(t *rapid.T) {
		r := &restingWithJail{resting: resting{in: start}}
		r.in.Cluster = start.Cluster.DeepCopy()
		spec := &r.in.Cluster.Spec
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			switch rapid.IntRange(0, 14).Draw(t, "change") {
			case 0:
				r.mode(modes.Draw(t, "mode"))
			case 1:
				spec.PopulateJail.Overwrite = rapid.Bool().Draw(t, "overwrite")
			case 2:
				spec.PopulateJail.Image = rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "image")
			}
			r.pass()
			if spec.Maintenance == nebiusv1.MaintenanceSkipPopulateJail && r.in.Observed.Populate.Job == nil {
				r.half = false // somebody else fills it
			}
			r.step(rapid.IntRange(0, 5).Draw(t, "who"), ends.Draw(t, "end"))
			if pods := r.in.Observed.Rest.Workers + r.login + r.writers; r.overwriting() && pods > 0 {
				t.Fatalf("%d workers, %d login pods and %d writers have the jail while it is overwritten, in mode %s", r.in.Observed.Rest.Workers, r.login, r.writers, spec.Maintenance)
			}
		}
		spec.PopulateJail.Overwrite = false
		out := r.end(nebiusv1.MaintenanceNone)
		if out.Jail.ForPods { // what the condition asks an administrator to do
			r.end(nebiusv1.MaintenanceDownscaleAndOverwritePopulateJail)
			out = r.end(nebiusv1.MaintenanceNone)
		}
		if r.in.Observed.Rest.Workers != 2 || r.login != 1 || r.writers != 1 || r.slurmctld != 1 || out.Jail.Condition.Status != metav1.ConditionTrue {
			t.Fatalf("in the end there are %d workers, %d login pods, %d writers and %d slurmctlds: %+v", r.in.Observed.Rest.Workers, r.login, r.writers, r.slurmctld, out.Jail.Condition)
		}
	})
}
