// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

// waitsForItsCheck makes a new worker whose machine a check has to look at first: no job starts there before it has passed, and those that
// run elsewhere go on.
func (s *scene) waitsForItsCheck(t *testing.T) {
	m := s.manifest(t, "requiredcheck.yaml")
	s.apply(t, m)
	s.slurmShows(t, "scontrol show node fresh-0", "+DRAIN", "Reason=slurm-operator: waits for checks")
	id, err := s.slurm(t.Context(), "sbatch", "--parsable", "--nodelist=fresh-0", "--output=/dev/null", "--wrap=true")
	if err != nil {
		t.Fatal(err)
	}
	id = strings.TrimSpace(id)
	s.saysOutOfService(t, "demo-fresh-0", slinkyv1beta1.ReasonWaitsForChecks)
	for _, worker := range []string{"small-0", "big-0"} {
		s.slurmShows(t, "scontrol show node "+worker, "State=IDLE+DYNAMIC_NORM ")
	}
	s.slurmShows(t, "scontrol show job "+id, "JobState=PENDING")

	if _, err := s.worker(t.Context(), "touch /mnt/jail/gate-is-open"); err != nil {
		t.Fatal(err)
	}
	s.slurmShows(t, "scontrol show job "+id, "JobState=COMPLETED", "NodeList=fresh-0")
	s.saysOutOfService(t, "demo-fresh-0", "")

	for i := range m {
		if err := s.Delete(t.Context(), m[i]); err != nil {
			t.Fatalf("deleting %s %s: %v", m[i].GetKind(), m[i].GetName(), err)
		}
	}
	eventually(t, 2*soon, "the worker to be gone", func(ctx context.Context) error {
		if err := s.Get(ctx, s.name("demo-fresh-0"), &corev1.Pod{}); !apierrors.IsNotFound(err) {
			return errors.Join(errors.New("it is there"), err)
		}
		return nil
	})
}
