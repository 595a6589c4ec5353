// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package activecheck

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

const (
	ready   = nebiusv1alpha1.ConditionReady
	stalled = nebiusv1alpha1.ConditionStalled
)

// start starts the operator with a SlurmCluster that is available.
func start(t *testing.T) *operator.Operator {
	t.Helper()
	o := operator.Start(t)
	operator.Create[nebiusv1.SlurmCluster](o, `{metadata: {name: demo}, spec: {slurmNodes: {worker: {size: 1}, login: {size: 1}, rest: {enabled: true}}}}`)
	awaitPhase(o, t)
	return o
}

func awaitPhase(o *operator.Operator, t *testing.T) {
	t.Helper()
	apiserver.Eventually(t, func() error {
		o.RunWorkloads()
		o.RunWorkers()
		if phase := operator.Get[nebiusv1.SlurmCluster](o, "demo").Status.Phase; phase != nebiusv1.PhaseAvailable {
			return fmt.Errorf("the cluster is %q", phase)
		}
		return nil
	})
}

// check makes a check of the cluster.
func check(o *operator.Operator, name, spec string) {
	operator.Create[nebiusv1alpha1.ActiveCheck](o, `{metadata: {name: `+name+`}, spec: {slurmClusterRefName: demo, k8sJobSpec: {jobContainer: {image: check}}, `+spec+`}}`)
}

// setJob has Kubernetes report that a Job runs, or how it ended.
func setJob(t *testing.T, o *operator.Operator, name string, kind batchv1.JobConditionType) {
	t.Helper()
	operator.ExpectExists[batchv1.Job](o, name)
	j, now := operator.Get[batchv1.Job](o, name), metav1.Now()
	before := j.DeepCopy()
	j.Status = batchv1.JobStatus{StartTime: cmp.Or(before.Status.StartTime, &now), Active: 1}
	criterion := map[batchv1.JobConditionType]batchv1.JobConditionType{batchv1.JobComplete: batchv1.JobSuccessCriteriaMet, batchv1.JobFailed: batchv1.JobFailureTarget}[kind]
	if kind == batchv1.JobComplete {
		j.Status.Succeeded, j.Status.CompletionTime = 1, &now
	}
	if kind != "" {
		j.Status.Active = 0
		for _, one := range []batchv1.JobConditionType{criterion, kind} {
			j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{
				Type: one, Status: corev1.ConditionTrue, LastTransitionTime: now, Reason: "BackoffLimitExceeded", Message: "it ended",
			})
		}
	}
	if err := o.User.Status().Patch(t.Context(), j, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

// expectLast waits until a check shows this of its last Job.
func expectLast(t *testing.T, o *operator.Operator, name, job string, status nebiusv1alpha1.K8sJobStatus) *nebiusv1alpha1.K8sJobsStatus {
	t.Helper()
	var last *nebiusv1alpha1.K8sJobsStatus
	apiserver.Eventually(t, func() error {
		last = operator.Get[nebiusv1alpha1.ActiveCheck](o, name).Status.K8sJobsStatus
		if last == nil || last.LastJobName != job || last.LastJobStatus != status {
			return fmt.Errorf("%s says %+v, want Job %s %s", name, last, job, status)
		}
		return nil
	})
	return last
}

// byHand makes a Job as "kubectl create job --from=cronjob/NAME" does.
func byHand(t *testing.T, o *operator.Operator, cron, name string) {
	t.Helper()
	from := operator.Get[batchv1.CronJob](o, cron)
	j := &batchv1.Job{Spec: from.Spec.JobTemplate.Spec}
	j.Namespace, j.Name, j.Labels, j.Annotations = o.Namespace, name, from.Spec.JobTemplate.Labels, map[string]string{"cronjob.kubernetes.io/instantiate": "manual"}
	j.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(from, batchv1.SchemeGroupVersion.WithKind("CronJob"))}
	if err := o.User.Create(t.Context(), j); err != nil {
		t.Fatal(err)
	}
}

func TestACheckRunsAfterCreationAndByHand(t *testing.T) {
	t.Parallel()
	o := start(t)
	check(o, "second", "dependsOn: [first], suspend: false")
	if message := operator.ExpectCondition[nebiusv1alpha1.ActiveCheck](o, "second", ready, metav1.ConditionFalse, "Waiting"); message != "ActiveCheck first: does not exist" {
		t.Errorf("second says %q", message)
	}
	check(o, "first", "")
	expectLast(t, o, "first", "first-initial-run", nebiusv1alpha1.K8sJobPending)
	if message := operator.ExpectCondition[nebiusv1alpha1.ActiveCheck](o, "first", ready, metav1.ConditionTrue, "Available"); message != "CronJob first: there are only runs by hand, because spec.suspend is true" {
		t.Errorf("first says %q", message)
	}
	for _, owned := range []client.Object{operator.Get[batchv1.CronJob](o, "first"), operator.Get[batchv1.Job](o, "first-initial-run")} {
		if !metav1.IsControlledBy(owned, operator.Get[nebiusv1alpha1.ActiveCheck](o, "first")) {
			t.Errorf("%T %s would stay when the check is deleted: %+v", owned, owned.GetName(), owned.GetOwnerReferences())
		}
	}
	setJob(t, o, "first-initial-run", "")
	expectLast(t, o, "first", "first-initial-run", nebiusv1alpha1.K8sJobActive)
	if operator.Exists[batchv1.CronJob](o, "second") {
		t.Error("second did not wait for first")
	}
	setJob(t, o, "first-initial-run", batchv1.JobComplete)
	if last := expectLast(t, o, "first", "first-initial-run", nebiusv1alpha1.K8sJobComplete); last.LastJobSuccessfulTime == nil {
		t.Errorf("it did not succeed at any time: %+v", last)
	}
	expectLast(t, o, "second", "second-initial-run", nebiusv1alpha1.K8sJobPending)
	if message := operator.ExpectCondition[nebiusv1alpha1.ActiveCheck](o, "second", ready, metav1.ConditionTrue, "Available"); message != "CronJob second: runs by schedule 0 0 1 1 *" {
		t.Errorf("second says %q", message)
	}

	byHand(t, o, "first", "mine")
	setJob(t, o, "mine", batchv1.JobFailed)
	expectLast(t, o, "first", "mine", nebiusv1alpha1.K8sJobFailed)
	apiserver.Eventually(t, func() error { return told(t, o, "Job mine failed: BackoffLimitExceeded: it ended") })
	// The status keeps what it has of a Job that is gone, and there is one run after creation.
	for _, name := range []string{"mine", "first-initial-run"} {
		if err := o.User.Delete(t.Context(), operator.Get[batchv1.Job](o, name), client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
			t.Fatal(err)
		}
	}
	operator.ExpectGone[batchv1.Job](o, "first-initial-run")
	o.Settle()
	expectLast(t, o, "first", "mine", nebiusv1alpha1.K8sJobFailed)
	o.ExpectNoErrors() // before the restart, which breaks off writes of events
	o.Writes.Reset()
	o.Restart()
	o.Settle()
	o.Writes.ExpectNone(t)
}

// told returns an error unless an event about a check that failed has this note.
func told(t *testing.T, o *operator.Operator, note string) error {
	t.Helper()
	return toldAs(t, o, nebiusv1alpha1.ReasonCheckFailed, note)
}

// toldAs returns an error unless an event with this reason has this note.
func toldAs(t *testing.T, o *operator.Operator, reason, note string) error {
	t.Helper()
	var list eventsv1.EventList
	if err := o.User.List(t.Context(), &list, client.InNamespace(o.Namespace)); err != nil {
		return err
	}
	for _, e := range list.Items {
		if e.Regarding.Kind == "ActiveCheck" && e.Reason == reason && e.Note == note {
			return nil
		}
	}
	return fmt.Errorf("none of %d events says %q", len(list.Items), note)
}

func TestTheRunsOfACheckRestWithItsCluster(t *testing.T) {
	t.Parallel()
	o := start(t)
	check(o, "disk", "suspend: false")
	isSuspended := func(want bool) {
		t.Helper()
		apiserver.Eventually(t, func() error {
			if c := operator.Get[batchv1.CronJob](o, "disk"); *c.Spec.Suspend != want {
				return fmt.Errorf("want suspend %v: %+v", want, c)
			}
			return nil
		})
	}
	isSuspended(false)
	operator.ExpectExists[batchv1.Job](o, "disk-initial-run") // in maintenance it would wait for this
	operator.Change(o, "demo", func(c *nebiusv1.SlurmCluster) { c.Spec.Maintenance = nebiusv1.MaintenanceDownscale })
	isSuspended(true)
	apiserver.Eventually(t, func() error {
		message := operator.ExpectCondition[nebiusv1alpha1.ActiveCheck](o, "disk", ready, metav1.ConditionTrue, "Available")
		if message != "CronJob disk: scheduled runs are suspended, because SlurmCluster demo is in maintenance" {
			return fmt.Errorf("it says %q", message)
		}
		return nil
	})
	operator.Change(o, "demo", func(c *nebiusv1.SlurmCluster) { c.Spec.Maintenance = nebiusv1.MaintenanceNone })
	isSuspended(false)
	operator.Delete[nebiusv1.SlurmCluster](o, "demo")
	isSuspended(true)
	operator.ExpectCondition[nebiusv1alpha1.ActiveCheck](o, "disk", ready, metav1.ConditionFalse, "Waiting")
}

func TestWhatACheckRefersToIsWaitedFor(t *testing.T) {
	t.Parallel()
	o := start(t)
	check(o, "disk", "podTemplateNameRef: mine")
	expect := func(name, message string) {
		t.Helper()
		if got := operator.ExpectCondition[nebiusv1alpha1.ActiveCheck](o, name, ready, metav1.ConditionFalse, "ReferenceNotFound"); got != message {
			t.Errorf("%s says %q", name, got)
		}
	}
	expect("disk", "spec.podTemplateNameRef: PodTemplate mine does not exist; create it or remove the reference")
	operator.Create[corev1.PodTemplate](o, `{metadata: {name: mine}, template: {spec: {containers: [{name: disk, image: mine}]}}}`)
	operator.ExpectExists[batchv1.Job](o, "disk-initial-run")
	image := func() string {
		return operator.Get[batchv1.CronJob](o, "disk").Spec.JobTemplate.Spec.Template.Spec.Containers[0].Image
	}
	if image() != "mine" {
		t.Errorf("the image is %s", image())
	}
	operator.Change(o, "mine", func(p *corev1.PodTemplate) { p.Template.Spec.Containers[0].Image = "other" })
	apiserver.Eventually(t, func() error {
		if image() != "other" {
			return fmt.Errorf("the image is %s", image())
		}
		return nil
	})

	operator.Create[nebiusv1alpha1.ActiveCheck](o, `{metadata: {name: script}, spec: {slurmClusterRefName: demo, k8sJobSpec: {scriptRefName: scripts, jobContainer: {image: check}}}}`)
	expect("script", "spec.k8sJobSpec.scriptRefName: ConfigMap scripts does not exist; create it or remove the reference")
	operator.Create[corev1.ConfigMap](o, `{metadata: {name: scripts}, data: {script.sh: "true"}}`)
	operator.ExpectExists[batchv1.Job](o, "script-initial-run")
	o.Settle()
	o.ExpectNoErrors()
}

func TestMistakesOfACheckAreTold(t *testing.T) {
	t.Parallel()
	o := start(t)
	check(o, "a", "dependsOn: [b]")
	check(o, "b", "dependsOn: [c]")
	check(o, "c", "dependsOn: [a]")
	for name, cycle := range map[string]string{"a": "a -> b -> c -> a", "b": "b -> c -> a -> b", "c": "c -> a -> b -> c"} {
		message := operator.ExpectCondition[nebiusv1alpha1.ActiveCheck](o, name, stalled, metav1.ConditionTrue, nebiusv1alpha1.ReasonInvalidSpec)
		if !strings.HasPrefix(message, "spec.dependsOn: "+cycle+": ") {
			t.Errorf("%s says %q", name, message)
		}
	}
	check(o, "schedule", "schedule: sometimes")
	message := operator.ExpectCondition[nebiusv1alpha1.ActiveCheck](o, "schedule", stalled, metav1.ConditionTrue, nebiusv1alpha1.ReasonInvalidSpec)
	if !strings.Contains(message, "spec.schedule") {
		t.Errorf("schedule says %q", message)
	}
	operator.Create[batchv1.CronJob](o, `{metadata: {name: taken}, spec: {schedule: "0 0 * * *", jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}}}}`)
	check(o, "taken", "")
	operator.ExpectCondition[nebiusv1alpha1.ActiveCheck](o, "taken", stalled, metav1.ConditionTrue, "NameConflict")
	if operator.Exists[batchv1.Job](o, "taken-initial-run") {
		t.Error("a check without a CronJob has run")
	}
	o.Settle()
	o.ExpectNoErrors()
}
