// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcluster

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/coxswain-hpc/coxswain/api/embedded"
	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

// jailed is a cluster with a jail, and the objects that matter to it.
type jailed struct {
	*world
	cluster *nebiusv1.SlurmCluster
	job     *batchv1.Job
	login   *slinkyv1beta1.LoginSet
	workers *slinkyv1beta1.NodeSet
}

func newJailed(t *testing.T) *jailed {
	t.Helper()
	w := newWorld(t)
	spec := demoSpec()
	volume := embedded.VolumeSource{RawExtension: embedded.From(map[string]any{"persistentVolumeClaim": map[string]any{"claimName": "jail"}})}
	spec.VolumeSources = append(spec.VolumeSources, nebiusv1.VolumeSource{Name: "jail", VolumeSource: volume})
	return &jailed{
		world: w, cluster: w.cluster("demo", spec), job: &batchv1.Job{ObjectMeta: w.meta("demo-populate-jail")},
		login: &slinkyv1beta1.LoginSet{ObjectMeta: w.meta("demo-login")}, workers: &slinkyv1beta1.NodeSet{ObjectMeta: w.meta("demo-worker")},
	}
}

// says waits for the condition about the jail.
func (j *jailed) says(status metav1.ConditionStatus, reason, text string) {
	j.t.Helper()
	await(j.world, j.cluster, func(c *nebiusv1.SlurmCluster) error {
		return condition(c.Status.Conditions, nebiusv1.ConditionJailPopulated, status, reason, text)
	})
}

// another waits until the Job is another one, with this value of OVERWRITE.
func (j *jailed) another(overwrite string) {
	j.t.Helper()
	was := j.job.UID
	await(j.world, j.job, func(job *batchv1.Job) error {
		if job.UID == was {
			return errors.New("it is the same Job")
		}
		if got := job.Spec.Template.Spec.Containers[0].Env[0]; got.Name != "OVERWRITE" || got.Value != overwrite {
			return fmt.Errorf("%s is %s", got.Name, got.Value)
		}
		return nil
	})
}

// same fails the test unless the Job is the one that it was.
func (j *jailed) same() {
	j.t.Helper()
	was := j.job.UID
	if err := j.user.Get(j.t.Context(), client.ObjectKeyFromObject(j.job), j.job); err != nil || j.job.UID != was {
		j.t.Fatalf("the Job is another one (%v)", err)
	}
}

// ends plays the Job's controller.
func (j *jailed) ends(kind batchv1.JobConditionType) {
	j.t.Helper()
	j.exists(j.job)
	now := metav1.Now()
	before := batchv1.JobSuccessCriteriaMet
	if j.job.Status.StartTime == nil { // it cannot be set again
		j.job.Status.StartTime = &now
	}
	if kind == batchv1.JobFailed {
		before = batchv1.JobFailureTarget
		j.job.Status.Failed = 7
	} else {
		j.job.Status.CompletionTime, j.job.Status.Succeeded = &now, 1
	}
	for _, c := range []batchv1.JobConditionType{before, kind} {
		j.job.Status.Conditions = append(j.job.Status.Conditions, batchv1.JobCondition{Type: c, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	if err := j.user.Status().Update(j.t.Context(), j.job); err != nil {
		j.t.Fatal(err)
	}
}

// pod makes a pod and gives it a phase.
func (j *jailed) pod(name string, labels map[string]string, phase corev1.PodPhase, message string) *corev1.Pod {
	j.t.Helper()
	p := &corev1.Pod{ObjectMeta: j.meta(name), Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "main", Image: "i"}},
		Volumes:    []corev1.Volume{{Name: "jail", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
	}}
	p.Labels = labels
	j.create(p)
	p.Status.Phase = phase
	if phase == corev1.PodFailed {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: message},
		}}}
	}
	if err := j.user.Status().Update(j.t.Context(), p); err != nil {
		j.t.Fatal(err)
	}
	return p
}

func (j *jailed) annotate(progress string) {
	j.t.Helper()
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{"coxswain.dev/populate-progress":%q}}}`, progress))
	if err := j.user.Patch(j.t.Context(), j.job, patch); err != nil {
		j.t.Fatal(err)
	}
}

func TestPodsWaitUntilTheJailIsFilled(t *testing.T) {
	t.Parallel()
	j := newJailed(t)
	j.exists(j.job, &corev1.ServiceAccount{ObjectMeta: j.meta("demo-populate-jail")}, &rbacv1.RoleBinding{ObjectMeta: j.meta("demo-populate-jail")},
		&slinkyv1beta1.Controller{ObjectMeta: j.meta("demo")})
	role := &rbacv1.Role{ObjectMeta: j.meta("demo-populate-jail")}
	j.exists(role)
	if len(role.Rules) != 1 || !slices.Equal(role.Rules[0].ResourceNames, []string{"demo-populate-jail"}) || !slices.Equal(role.Rules[0].Verbs, []string{"patch"}) {
		t.Errorf("the pod may do this: %+v", role.Rules)
	}
	j.says(metav1.ConditionFalse, "Populating", "its pod has not begun yet")
	j.annotate(`{"files":12,"bytes":345,"seconds":6}`)
	j.says(metav1.ConditionFalse, "Populating", "12 files, 345 bytes in 6 s")
	await(j.world, j.cluster, func(c *nebiusv1.SlurmCluster) error {
		return errors.Join(
			condition(c.Status.Conditions, "WorkersAvailable", metav1.ConditionFalse, "NotAvailable", "NodeSet demo-worker: waits for the jail, see condition JailPopulated"),
			condition(c.Status.Conditions, "LoginAvailable", metav1.ConditionFalse, "NotAvailable", "waits for the jail"))
	})
	for _, early := range []client.Object{j.login, j.workers} {
		if err := j.user.Get(t.Context(), client.ObjectKeyFromObject(early), early); !apierrors.IsNotFound(err) {
			t.Errorf("%T is there before the jail (%v)", early, err)
		}
	}
	j.pod("failed", map[string]string{batchv1.JobNameLabel: "demo-populate-jail"}, corev1.PodFailed, "jail: the jail is full, writing /usr/lib/x\n")
	j.exists(j.job)
	j.job.Status.Failed, j.job.Status.StartTime = 1, new(metav1.Now())
	if err := j.user.Status().Update(t.Context(), j.job); err != nil {
		t.Fatal(err)
	}
	j.says(metav1.ConditionFalse, "Populating", "attempt 2, the previous one ended with: jail: the jail is full, writing /usr/lib/x")
	j.ends(batchv1.JobComplete)
	j.exists(j.login, j.workers)
	j.says(metav1.ConditionTrue, "Populated", "12 files, 345 bytes in 6 s")
	quiet(j.world, j.cluster, func(*nebiusv1.SlurmCluster) error { return nil })
}

func TestAFailedJobIsToldWithItsLastWords(t *testing.T) {
	t.Parallel()
	j := newJailed(t)
	j.exists(j.job)
	j.pod("failed", map[string]string{batchv1.JobNameLabel: "demo-populate-jail"}, corev1.PodFailed, "jail: /mnt/jail holds precious but no root file system")
	j.ends(batchv1.JobFailed)
	j.says(metav1.ConditionFalse, "Failed", "holds precious but no root file system. Correct the cause and delete the Job")
	await(j.world, j.cluster, func(c *nebiusv1.SlurmCluster) error {
		return condition(c.Status.Conditions, "Stalled", metav1.ConditionTrue, "PopulateJailFailed", "holds precious")
	})
	// Another image is another template: no Job that failed stands in its way.
	edit(j.world, j.cluster, func(c *nebiusv1.SlurmCluster) { c.Spec.PopulateJail.Image = "another:1" })
	j.another("0")
	if err := j.user.Delete(t.Context(), j.job, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		t.Fatal(err)
	}
	j.another("0")
}

func TestAJailIsOverwrittenOnlyWithoutPods(t *testing.T) {
	t.Parallel()
	j := newJailed(t)
	j.ends(batchv1.JobComplete)
	j.exists(j.workers)
	// Mount points overwrite nothing, so that pods may run.
	user := j.pod("demo-worker-0", map[string]string{"app.kubernetes.io/name": "slurmd", slinkyv1beta1.LabelCluster: "demo"}, corev1.PodRunning, "")
	edit(j.world, j.cluster, func(c *nebiusv1.SlurmCluster) {
		c.Spec.SlurmNodes.Login.Volumes.JailSubMounts = []nebiusv1.NodeVolumeMount{{Name: "data", MountPath: "/data", VolumeSourceName: "jail"}}
	})
	j.another("0")
	if args := j.job.Spec.Template.Spec.Containers[0].Args; !slices.Contains(args, "--mount-point=/data") {
		t.Errorf("the new Job has the arguments %q", args)
	}
	j.says(metav1.ConditionTrue, "Populating", "its pod has not begun yet")
	j.exists(j.workers, j.login)
	j.ends(batchv1.JobComplete)
	j.says(metav1.ConditionTrue, "Populated", "")

	edit(j.world, j.cluster, func(c *nebiusv1.SlurmCluster) { c.Spec.PopulateJail.Overwrite = true })
	j.says(metav1.ConditionTrue, "Waiting", "1 login and worker pods do")
	j.same()
	edit(j.world, j.cluster, func(c *nebiusv1.SlurmCluster) {
		c.Spec.PopulateJail.Overwrite = false
		c.Spec.Maintenance = nebiusv1.MaintenanceDownscaleAndOverwritePopulateJail
	})
	j.says(metav1.ConditionTrue, "Waiting", "1 login and worker pods do")
	if err := j.user.Delete(t.Context(), user, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	j.poke(j.cluster, 1) // sooner than in ten seconds
	j.another("1")
	j.ends(batchv1.JobComplete)
	j.says(metav1.ConditionTrue, "Populated", "")

	// Once for the mode: neither staying in it nor leaving it makes another.
	j.poke(j.cluster, 2)
	edit(j.world, j.cluster, func(c *nebiusv1.SlurmCluster) { c.Spec.Maintenance = nebiusv1.MaintenanceNone })
	await(j.world, j.cluster, func(c *nebiusv1.SlurmCluster) error {
		return condition(c.Status.Conditions, "PopulateJailMode", metav1.ConditionTrue, "none", "")
	})
	j.same()
	// The same image has been copied over it, so that nothing is left to do.
	edit(j.world, j.cluster, func(c *nebiusv1.SlurmCluster) { c.Spec.PopulateJail.Overwrite = true })
	j.says(metav1.ConditionTrue, "Populated", "")
	j.same()
	edit(j.world, j.cluster, func(c *nebiusv1.SlurmCluster) {
		c.Spec.Maintenance = nebiusv1.MaintenanceDownscaleAndDeletePopulateJail
	})
	j.gone(j.job)
	j.says(metav1.ConditionTrue, "Waiting", "there is no Job")
}

func TestAJailThatIsNotToBeFilledIsTakenAsItIs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	spec := demoSpec()
	spec.Maintenance = nebiusv1.MaintenanceSkipPopulateJail
	volume := embedded.VolumeSource{RawExtension: embedded.From(map[string]any{"emptyDir": map[string]any{}})}
	spec.VolumeSources = append(spec.VolumeSources, nebiusv1.VolumeSource{Name: "jail", VolumeSource: volume})
	c := w.cluster("demo", spec)
	w.exists(&slinkyv1beta1.LoginSet{ObjectMeta: w.meta("demo-login")}, &slinkyv1beta1.NodeSet{ObjectMeta: w.meta("demo-worker")})
	await(w, c, func(c *nebiusv1.SlurmCluster) error {
		return condition(c.Status.Conditions, nebiusv1.ConditionJailPopulated, metav1.ConditionTrue, "Skipped", "filled by other means")
	})
	if err := w.user.Get(t.Context(), types.NamespacedName{Namespace: w.server.Namespace, Name: "demo-populate-jail"}, &batchv1.Job{}); !apierrors.IsNotFound(err) {
		t.Errorf("there is a Job (%v)", err)
	}
}
