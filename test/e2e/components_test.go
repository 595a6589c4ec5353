// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/coxswain-hpc/coxswain/test/login"
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
	alice.seesAccounted(t, job)

	door, err := walk.NewDoor(t.Context(), s.Kubernetes, s.name("login"), "login")
	if err != nil {
		t.Fatal(err)
	}
	t.Run("slurmrestd answers as the fake Slurm does", func(t *testing.T) { s.compareAnswers(t, "rest", "slurm", "node-0") })
	t.Run("users of another Kubernetes come in through a forwarded port", func(t *testing.T) {
		elsewhere := &scene{Kubernetes: &walk.Kubernetes{}, namespace: s.namespace}
		*elsewhere.Kubernetes = *s.Kubernetes
		elsewhere.Local = false
		if got := elsewhere.enter(t, door, "alice").runs(t, "id -un"); got != "alice" {
			t.Errorf("id -un printed %q", got)
		}
	})
	t.Run("strangers do not come in", func(t *testing.T) {
		stranger, err := login.EnsureKey(filepath.Join(t.TempDir(), "key"))
		if err != nil {
			t.Fatal(err)
		}
		s.refuses(t, door, stranger, "unable to authenticate")
	})
	t.Run("nobody can pretend to be the login node", func(t *testing.T) {
		imposter, err := login.EnsureKey(filepath.Join(t.TempDir(), "key"))
		if err != nil {
			t.Fatal(err)
		}
		s.refuses(t, &walk.Door{Service: door.Service, HostKey: imposter.AuthorizedKey()}, stage.key, "host key mismatch")
	})
}

// refuses tries to log in as alice and expects an error.
func (s *scene) refuses(t *testing.T, door *walk.Door, key *login.Key, want string) {
	t.Helper()
	address, release, err := s.Reach(t.Context(), door.Service)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	session, err := login.Dial(t.Context(), address, "alice", key, door.HostKey)
	if err == nil {
		t.Fatal("it let us in", session.Close())
	}
	if !strings.Contains(err.Error(), want) {
		t.Errorf("logging in failed with %q, not %q", err, want)
	}
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
