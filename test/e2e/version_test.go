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

// The operator that runs Slurm 26.05 also runs 24.11, the release of Debian trixie, and takes it to 26.05 under a running job.
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
	m := s.components(t, "version.yaml")
	alice := s.enterLoginSet(t, "old-login", "alice")
	for _, command := range []string{"scontrol show config | grep SLURM_VERSION", "srun --chdir=/ /usr/sbin/slurmd -V"} {
		if out := alice.runs(t, command); !strings.Contains(out, "24.11") {
			t.Errorf("%q printed %q, not 24.11", command, out)
		}
	}
	hosts := strings.Fields(alice.runs(t, "srun --chdir=/ --nodes=2 hostname"))
	slices.Sort(hosts)
	if !slices.Equal(hosts, []string{"old-node-0", "old-node-1"}) {
		t.Errorf("srun --nodes=2 hostname printed %v", hosts)
	}
	t.Run("the daemons of the control plane are upgraded", func(t *testing.T) { s.upgrades(t, m, alice) })
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
