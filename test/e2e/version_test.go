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

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/coxswain-hpc/coxswain/test/walk"
)

// The operator that runs Slurm 26.05 also runs 24.11, the release of Debian trixie, and takes it to 26.05 under a running job. The
// jail, which an image of 24.11 has filled, is left as it is.
func TestSlurm2411(t *testing.T) {
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
	t.Run("PMIx ranks the tasks of a step over both workers, in the jail", func(t *testing.T) {
		alice.seesRanks(t, "pmix", "PMIX_RANK", "old-node-0", "old-node-1")
	})
	if !t.Run("the daemons of the control plane are upgraded", func(t *testing.T) { s.upgrades(t, m, alice) }) {
		return // the next would begin from somewhere else
	}
	t.Run("commands in the jail are of the new release when its pods are", func(t *testing.T) { s.upgradesJail(t, m) })
}

// upgrades changes the images of slurmdbd, slurmctld and slurmrestd at once. The slurmdbd must not be older than slurmctld, so it
// goes first. Workers and login pods stay with the release of before, as does the job that runs.
func (s *scene) upgrades(t *testing.T, m walk.Manifest, alice *user) {
	t.Helper()
	finished := alice.completes(t)
	running := alice.submits(t, "until [ -e /tmp/released ]; do sleep 0.2; done\n", "--chdir=/tmp", "--output=/dev/null")
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

// upgradesJail changes the images of workers and login pods. The jail has commands of the release of before.
func (s *scene) upgradesJail(t *testing.T, m walk.Manifest) {
	t.Helper()
	before := s.uids(t, "old-node-0", "old-node-1")
	var changed walk.Manifest
	for _, o := range m {
		container, ok := map[string]string{"LoginSet": "login", "NodeSet": "slurmd"}[o.GetKind()]
		if !ok {
			continue
		}
		if err := unstructured.SetNestedField(o.Object, stage.images.Registry+"/"+container+":"+stage.images.Tag, "spec", container, "image"); err != nil {
			t.Fatal(err)
		}
		changed = append(changed, o)
	}
	s.apply(t, changed)
	for name, uid := range before {
		s.awaitPod(t, name, uid)
	}
	s.awaitReady(t, changed)
	var alice *user
	eventually(t, patient, "login pods of 26.05", func(ctx context.Context) error {
		alice = s.enterLoginSet(t, "old-login", "alice")
		out, err := alice.Run(ctx, "squeue --version")
		if err == nil && !strings.Contains(out, "26.05") {
			err = errors.New(out)
		}
		return err
	})
	s.enterLoginSet(t, "old-login", "alice").seesBanner(t, "2 idle\r\nYour jobs: 0 running, 0 pending\r\n")
	for _, command := range []string{"srun --nodes=2 squeue --version", "srun --nodes=2 sh -c '. /etc/os-release; echo $VERSION_CODENAME in $(pwd) as $(id -un)'"} {
		want := "trixie in /home/alice as alice"
		if strings.Contains(command, "--version") {
			want = strings.TrimSpace(alice.runs(t, "squeue --version"))
		}
		if got := alice.runs(t, command); got != want+"\n"+want {
			t.Errorf("%s printed %q, not twice %q", command, got, want)
		}
	}
}
