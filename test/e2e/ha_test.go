// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/test/login"
	"github.com/coxswain-hpc/coxswain/test/walk"
)

// A backup takes over when the active slurmctld is gone and does not come back, and a job runs on.
func TestHighAvailability(t *testing.T) {
	needsTime(t)
	t.Parallel()
	s := newScene(t)
	c := controllerObject(t, s.components(t, "ha.yaml"))
	s.awaitCondition(t, soon, c, "HighlyAvailable", metav1.ConditionTrue)
	s.awaitActive(t, "slurm-controller-0")
	alice := s.enterLoginSet(t, "login", "alice")
	job, release := alice.submitsBlocked(t)

	// A finalizer keeps the name of the pod taken, as a Kubernetes node that is lost does: nothing replaces it.
	const held = "e2e.coxswain.dev/held"
	primary := s.pod(t, "slurm-controller-0")
	s.setFinalizers(t, primary, `["`+held+`"]`)
	// Whatever becomes of the test, its namespace has to go.
	t.Cleanup(func() {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		_ = s.Patch(context.WithoutCancel(t.Context()), primary.DeepCopy(), patch)
	})
	begin := time.Now()
	if err := s.Delete(t.Context(), primary, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	alice.seesSlurm(t, job, begin.Add(dying))
	quickly(t, "squeue answered", begin)
	second := alice.submitsSoon(t)
	quickly(t, "a job was accepted", begin)
	s.awaitActive(t, "slurm-controller-1")
	s.awaitCondition(t, soon, c, "HighlyAvailable", metav1.ConditionFalse)

	begin = time.Now()
	since := func() time.Duration { return time.Since(begin).Round(100 * time.Millisecond) }
	s.setFinalizers(t, primary, `null`)
	s.awaitPod(t, primary.Name, primary.UID)
	t.Logf("the pod of the first slurmctld was ready again after %s", since())
	s.awaitActive(t, "slurm-controller-0")
	s.awaitCondition(t, patient, c, "HighlyAvailable", metav1.ConditionTrue)
	t.Logf("the first slurmctld was in charge again after %s", since())
	s.endedForThePrimary(t, "slurm-controller-1")
	alice.awaits(t, second, "COMPLETED")
	s.survivesAFreeze(t, alice, job)
	release(t)
	alice.awaits(t, job, "COMPLETED")
}

// endedForThePrimary checks that a backup has ended before the primary took over, and that its container has not: a backup that hands over
// while it runs may save its state after the primary has read it, and a container that ends again and again is started later and later.
func (s *scene) endedForThePrimary(t *testing.T, backup string) {
	t.Helper()
	said, err := s.Clientset.CoreV1().Pods(s.namespace).GetLogs(backup, &corev1.PodLogOptions{Container: slinkyv1beta1.NameSlurmctld}).DoRaw(t.Context())
	if err != nil {
		t.Fatalf("reading the log of %s: %v", backup, err)
	}
	if !strings.Contains(string(said), "slurmctld has ended, and starts again as a backup") {
		t.Errorf("the backup did not end before the primary took over: %s", said)
	}
	for _, c := range s.pod(t, backup).Status.ContainerStatuses {
		if c.RestartCount > 0 {
			t.Errorf("container %s of the backup was restarted", c.Name)
		}
	}
}

// submitsSoon submits a job as soon as one is accepted.
func (u *user) submitsSoon(t *testing.T) (job int) {
	t.Helper()
	eventually(t, patient, "a job to be accepted", func(ctx context.Context) error {
		var err error
		job, err = u.Submit(ctx, login.Batch{Script: "hostname\n"})
		return err
	})
	return job
}

// failover is how long a fail-over may take for a user: SlurmctldTimeout of the manifest is 5 s, that of Slurm 120 s, and the machine that
// this runs on may be busy. The log shows how long it took.
const failover = 30 * time.Second

// dying is how long a slurmctld that the kubelet has to kill may go on answering.
const dying = time.Second

// quickly checks that something has happened in the time of a fail-over.
func quickly(t *testing.T, what string, begin time.Time) {
	t.Helper()
	took := time.Since(begin).Round(100 * time.Millisecond)
	if t.Logf("%s %s after the active slurmctld was killed", what, took); took > failover {
		t.Errorf("%s only %s after the active slurmctld was killed", what, took)
	}
}

// seesSlurm waits until squeue, asked after a time, knows a running job.
func (u *user) seesSlurm(t *testing.T, job int, after time.Time) {
	t.Helper()
	eventually(t, patient, "squeue to answer", func(ctx context.Context) error {
		if time.Now().Before(after) {
			return errors.New("it is too early to ask")
		}
		ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
		defer cancel()
		tasks, err := u.Queue(ctx, job)
		if err == nil && (len(tasks) != 1 || tasks[0].State != "RUNNING") {
			return fmt.Errorf("the job is %v", tasks)
		}
		return err
	})
}

func (s *scene) setFinalizers(t *testing.T, p *corev1.Pod, list string) {
	t.Helper()
	patch := []byte(`{"metadata":{"finalizers":` + list + `}}`)
	if err := s.Patch(t.Context(), p.DeepCopy(), client.RawPatch(types.MergePatchType, patch)); err != nil {
		t.Fatal(err)
	}
}

// awaitActive waits until the Service of slurmctld leads to one pod alone.
func (s *scene) awaitActive(t *testing.T, name string) {
	t.Helper()
	eventually(t, patient, name+" to be the active slurmctld", func(ctx context.Context) error {
		var pods corev1.PodList
		if err := s.List(ctx, &pods, client.InNamespace(s.namespace), client.MatchingLabels{"controller.slinky.slurm.net/active": "true"}); err != nil {
			return err
		}
		for i := range pods.Items {
			if p := &pods.Items[i]; p.Name != name && p.DeletionTimestamp == nil || p.Name == name && !walk.IsReady(p) {
				return fmt.Errorf("%s is marked", p.Name)
			}
		}
		if len(pods.Items) == 0 {
			return fmt.Errorf("no pod is marked")
		}
		return nil
	})
}
