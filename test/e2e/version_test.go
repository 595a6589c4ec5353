// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
	"github.com/coxswain-hpc/coxswain/test/walk"
)

// The operator that runs Slurm 26.05 also runs 24.11, the release of Debian trixie, and takes it to 26.05 under running jobs, one of
// which lasts from the first daemon to the last worker. The jail, which an image of 24.11 has filled, is left as it is.
func TestSlurm2411(t *testing.T) {
	needsTime(t)
	t.Parallel()
	s := newScene(t)
	if s.Local {
		old := stage.images
		old.Suite = "trixie"
		if err := old.Load(t.Context(), stage.repository, walk.NewProgress(os.Stderr)); err != nil {
			t.Fatal(err)
		}
	}
	m := s.manifest(t, "version.yaml")
	s.apply(t, m[:2])
	s.awaitJob(t, "populate")
	s.apply(t, m[2:])
	s.awaitReady(t, m)
	s.sound(t)
	alice := s.enterLoginSet(t, "old-login", "alice")
	for _, command := range []string{"scontrol show config | grep SLURM_VERSION", "srun squeue --version"} {
		if out := alice.runs(t, command); !strings.Contains(out, "24.11") {
			t.Errorf("%q printed %q, not 24.11", command, out)
		}
	}
	hosts := strings.Fields(alice.runs(t, "srun --chdir=/ --nodes=2 hostname"))
	slices.Sort(hosts)
	if !slices.Equal(hosts, []string{"old-node-0", "old-node-1"}) {
		t.Errorf("srun --nodes=2 hostname printed %v", hosts)
	}
	t.Run("slurmrestd tells of accounted jobs as the fake Slurm does", func(t *testing.T) { s.comparesAccounted(t, alice, "old", "old", "old-node-0") })
	t.Run("PMIx ranks the tasks of a step over both workers, in the jail", func(t *testing.T) {
		alice.seesRanks(t, "pmix", "PMIX_RANK", "old-node-0", "old-node-1")
	})
	long, _ := alice.submitsBlocked(t, "--nodelist=old-node-1", "--output=/dev/null")
	for _, part := range []struct {
		name string
		is   func(t *testing.T)
	}{
		{"the daemons of the control plane are upgraded", func(t *testing.T) { s.upgrades(t, m, alice) }},
		{"login pods are upgraded while a job runs in the jail", func(t *testing.T) { s.upgradesLogin(t, m) }},
		{"workers are upgraded when their jobs have ended", func(t *testing.T) { s.upgradesWorkers(t, m, long) }},
		{"commands in the jail are of the new release then", s.findsNewCommands},
	} {
		if !t.Run(part.name, part.is) {
			return // the next would begin from somewhere else
		}
	}
}

// upgrades changes the images of slurmdbd, slurmctld and slurmrestd at once. The slurmdbd must not be older than slurmctld, so it
// goes first. Workers and login pods stay with the release of before, as does the job that runs.
func (s *scene) upgrades(t *testing.T, m walk.Manifest, alice *user) {
	t.Helper()
	finished := alice.completes(t)
	running := alice.submits(t, "until [ -e /tmp/released ]; do sleep 1; done\n", "--chdir=/tmp", "--output=/dev/null")
	alice.awaits(t, running, "RUNNING")
	alice.seesAccounted(t, finished)

	begin := time.Now()
	before := s.uids(t, "old-accounting-0", "old-controller-0")
	var changed walk.Manifest
	for _, o := range m {
		daemon, ok := map[string]string{"Accounting": "slurmdbd", "Controller": "slurmctld", "RestApi": "slurmrestd"}[o.GetKind()]
		if !ok {
			continue
		}
		image := stage.images.Registry + "/" + daemon + ":" + stage.images.Tag
		if err := unstructured.SetNestedField(o.Object, image, "spec", daemon, "image"); err != nil {
			t.Fatal(err)
		}
		changed = append(changed, o)
	}
	s.apply(t, changed)
	s.awaitPod(t, "old-controller-0", before["old-controller-0"])
	// It need not be ready before: to convert a large database takes hours.
	slurmdbd, slurmctld := s.pod(t, "old-accounting-0"), s.pod(t, "old-controller-0")
	if slurmdbd.UID == before["old-accounting-0"] || slurmctld.CreationTimestamp.Before(&slurmdbd.CreationTimestamp) {
		t.Errorf("the new slurmctld was made at %s, before the new slurmdbd: that of now is of %s", slurmctld.CreationTimestamp, slurmdbd.CreationTimestamp)
	}
	s.awaitReady(t, changed)
	eventually(t, soon, "slurmctld to be 26.05", func(ctx context.Context) error {
		out, err := alice.Run(ctx, "scontrol show config | grep SLURM_VERSION")
		if err == nil && !strings.Contains(out, "26.05") {
			err = errors.New(out)
		}
		return err
	})
	t.Logf("slurmdbd and slurmctld were upgraded after %s", time.Since(begin).Round(time.Second))

	alice.awaits(t, running, "RUNNING")
	if out := alice.runs(t, fmt.Sprintf("scontrol show job %d | grep -o Restarts=[0-9]*", running)); out != "Restarts=0" {
		t.Errorf("scontrol says %s of the job that ran", out)
	}
	// A slurmd that reads its configuration anew, from the new slurmctld, may lose the launch of a step.
	eventually(t, patient, "a step of the job that runs to release it", func(ctx context.Context) error {
		_, err := alice.Run(ctx, fmt.Sprintf("srun --jobid=%d --overlap --chdir=/tmp touch /tmp/released", running))
		if tasks, lost := alice.Queue(ctx, running); err != nil && lost == nil && len(tasks) == 1 && tasks[0].State == "COMPLETED" {
			return nil // only the answer of the step was lost
		}
		return err
	})
	alice.seesAccounted(t, running)
	alice.seesAccounted(t, finished)
	alice.seesAccounted(t, alice.completes(t))
}

// upgradesLogin changes the image of the login pods, and waits until users come to new ones.
func (s *scene) upgradesLogin(t *testing.T, m walk.Manifest) {
	t.Helper()
	s.awaitReady(t, s.renews(t, m, "LoginSet", "login"))
	eventually(t, patient, "login pods of 26.05", func(ctx context.Context) error {
		out, err := s.enterLoginSet(t, "old-login", "alice").Run(ctx, "squeue --version")
		if err == nil && !strings.Contains(out, "26.05") {
			err = errors.New(out)
		}
		return err
	})
}

// upgradesWorkers changes the image of the workers, on one of which a job runs since all was of 24.11.
func (s *scene) upgradesWorkers(t *testing.T, m walk.Manifest, job int) {
	t.Helper()
	alice := s.enterLoginSet(t, "old-login", "alice")
	alice.awaits(t, job, "RUNNING")
	before := s.uids(t, "old-node-0", "old-node-1")
	changed := s.renews(t, m, "NodeSet", "slurmd")
	eventually(t, patient, "the worker of the job to wait for it", func(ctx context.Context) error {
		var p corev1.Pod
		if err := s.Get(ctx, s.name("old-node-1"), &p); err != nil {
			return err
		}
		if c := workerpod.Condition(&p, slinkyv1beta1.PodConditionRetiring); c == nil || c.Reason != slinkyv1beta1.ReasonWaitingForJobs {
			return fmt.Errorf("its condition is %v", c)
		}
		return nil
	})
	alice.seesNode(t, "old-node-1", "draining")
	alice.awaits(t, job, "RUNNING")
	if p := s.pod(t, "old-node-1"); p.UID != before["old-node-1"] || p.DeletionTimestamp != nil {
		t.Error("the worker of the job was deleted while it ran")
	}
	alice.runs(t, fmt.Sprintf("touch released-%d", job))
	alice.awaits(t, job, "COMPLETED")
	if out := alice.runs(t, fmt.Sprintf("scontrol show job %d | grep -o Restarts=[0-9]*", job)); out != "Restarts=0" {
		t.Errorf("scontrol says %s of the job that ran", out)
	}
	alice.seesAccounted(t, job)
	// A job that was requeued would have several records.
	if out := alice.runs(t, fmt.Sprintf("sacct --noheader --allocations --duplicates --parsable2 --jobs=%d --format=State,ExitCode,NodeList", job)); out != "COMPLETED|0:0|old-node-1" {
		t.Errorf("slurmdbd says %q of the job that ran", out)
	}
	for name, uid := range before {
		s.awaitPod(t, name, uid)
		alice.seesNode(t, name, "idle")
	}
	s.awaitReady(t, changed)
}

// findsNewCommands looks at the commands in the jail, and at the rest of it, which is of the release of before.
func (s *scene) findsNewCommands(t *testing.T) {
	t.Helper()
	alice := s.enterLoginSet(t, "old-login", "alice")
	logsIn := func(t *testing.T) *user { return s.enterLoginSet(t, "old-login", "alice") }
	seesBanner(t, logsIn, "2 idle\r\nYour jobs: 0 running, 0 pending\r\n")
	version := alice.runs(t, "squeue --version")
	if !strings.Contains(version, "26.05") {
		t.Errorf("squeue --version printed %q", version)
	}
	for command, want := range map[string]string{
		"srun --nodes=2 squeue --version": version,
		"srun --nodes=2 sh -c '. /etc/os-release; echo $VERSION_CODENAME in $(pwd) as $(id -un)'": "trixie in /home/alice as alice",
	} {
		if got := alice.runs(t, command); got != want+"\n"+want {
			t.Errorf("%s printed %q, not twice %q", command, got, want)
		}
	}
}

// renews gives a container of all objects of a kind the image of the release of now.
func (s *scene) renews(t *testing.T, m walk.Manifest, kind, container string) walk.Manifest {
	t.Helper()
	var changed walk.Manifest
	for _, o := range m {
		if o.GetKind() != kind {
			continue
		}
		if err := unstructured.SetNestedField(o.Object, stage.images.Registry+"/"+container+":"+stage.images.Tag, "spec", container, "image"); err != nil {
			t.Fatal(err)
		}
		changed = append(changed, o)
	}
	s.apply(t, changed)
	return changed
}
