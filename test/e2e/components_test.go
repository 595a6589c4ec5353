// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/coxswain-hpc/coxswain/test/walk"
)

// The kinds of slinky.slurm.net make a cluster without any SlurmCluster.
func TestComponents(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	m := s.manifest(t, "components.yaml")
	s.apply(t, m)
	for _, o := range m {
		if o.GroupVersionKind().Group == "slinky.slurm.net" {
			s.awaitCondition(t, patient, o, "Ready", metav1.ConditionTrue)
		}
	}
	alice := s.enterLoginSet(t, "login", "alice")
	job := alice.submits(t, "hostname\n", "--output=first-%j.out")
	alice.walksThrough(t)
	alice.seesAccounted(t, job, 1)
}

// enterLoginSet logs in to a LoginSet that no SlurmCluster has made.
func (s *scene) enterLoginSet(t *testing.T, loginSet, name string) *user {
	t.Helper()
	door, err := walk.NewDoor(t.Context(), s.Kubernetes, s.name(loginSet), loginSet)
	if err != nil {
		t.Fatal(err)
	}
	return s.enter(t, door, name)
}
