// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/coxswain-hpc/coxswain/test/login"
	"github.com/coxswain-hpc/coxswain/test/walk"
)

// The kinds of slinky.slurm.net make a cluster without any SlurmCluster.
func TestComponents(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	images := s.startRegistry(t)
	m := s.manifest(t, "components.yaml", "INSECURE_REGISTRY", images.host)
	s.issuesByRSA(t, m)
	if err := unstructured.SetNestedField(controllerObject(t, m).Object, true, "spec", "metrics", "enabled"); err != nil {
		t.Fatal(err)
	}
	s.apply(t, m)
	s.awaitReady(t, m)
	s.sound(t)
	alice := s.enterLoginSet(t, "login", "alice")
	job := alice.submits(t, "hostname\n", "--output=first-%j.out")
	alice.walksThrough(t)
	alice.seesAccounted(t, job)

	door, err := walk.NewDoor(t.Context(), s.Kubernetes, s.name("login"), "login")
	if err != nil {
		t.Fatal(err)
	}
	t.Run("slurmrestd answers as the fake Slurm does", func(t *testing.T) { s.compareAnswers(t, alice, "rest", "slurm", "node-0") })
	t.Run("users of another Kubernetes come in through a forwarded port", func(t *testing.T) {
		elsewhere := &scene{Kubernetes: &walk.Kubernetes{}, namespace: s.namespace}
		*elsewhere.Kubernetes = *s.Kubernetes
		elsewhere.Local = false
		if got := elsewhere.enter(t, door, "alice").runs(t, "id -un"); got != "alice" {
			t.Errorf("id -un printed %q", got)
		}
	})
	t.Run("jobs run in containers", func(t *testing.T) { alice.runsContainers(t, images) })
	t.Run("groups of a directory decide who may use a partition", func(t *testing.T) { alice.asksDirectory(t, s) })
	t.Run("tokens are used through a forwarded port", func(t *testing.T) {
		alice.usesToken(t, s, "ordinary-jwt-nobody", false)
		s.allowsPrivilegedTokens(t)
		alice.usesToken(t, s, "privileged-jwt-slurm", true)
	})
	t.Run("tokens are signed with RS256, too", func(t *testing.T) { alice.usesAsymmetricToken(t, s) })
	t.Run("the operator has metrics", func(t *testing.T) { s.scrapesOperator(t, "slurm", 2) })
	t.Run("slurmctld has metrics", func(t *testing.T) { alice.scrapesSlurmctld(t, "http://slurm-controller:6817") })
	t.Run("files come and go", func(t *testing.T) {
		if err := alice.Put(t.Context(), "batch.sh", []byte("#!/bin/sh\necho from a file\n")); err != nil {
			t.Fatal(err)
		}
		alice.runs(t, "sbatch --wait --mem=1 --output=batch.out batch.sh")
		if got, err := alice.Fetch(t.Context(), "batch.out"); err != nil || string(got) != "from a file\n" {
			t.Errorf("the job has written %q (%v)", got, err)
		}
	})
	t.Run("login nodes get fixed names, and lose them again", func(t *testing.T) { s.exchangesWorkload(t) })
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

// asksDirectory submits jobs to partitions for groups of the directory, which SSSD beside slurmctld knows: alice belongs to one of them, of
// which no other pod has heard.
func (u *user) asksDirectory(t *testing.T, s *scene) {
	if out := u.runs(t, "getent group crew || true"); out != "" {
		t.Fatalf("login pods know the group: %q", out)
	}
	waits := u.submits(t, "true\n", "--partition=guests")
	u.awaits(t, u.submits(t, "true\n", "--partition=crew"), "COMPLETED")
	if out := u.runs(t, fmt.Sprintf("squeue --noheader --format='%%T %%r' --jobs=%d; scancel %[1]d", waits)); !strings.HasPrefix(out, "PENDING uid 2000 not in group permitted to use this partition (guests)") {
		t.Errorf("a job in a partition for a group without its user is %q", out)
	}
	var pods corev1.PodList
	if err := s.List(t.Context(), &pods, client.InNamespace(s.namespace), client.MatchingLabels{"app.kubernetes.io/name": "slurmrestd"}); err != nil {
		t.Fatal(err)
	}
	rest := s.name(pods.Items[0].Name)
	for _, look := range []struct {
		pod                types.NamespacedName
		container, command string
		want               string
	}{
		{s.name("slurm-controller-0"), "slurmctld", "getent ahostsv4 node-0 | grep -c STREAM", "1\n"},
		{s.name("slurm-controller-0"), "slurmctld", "getent ahostsv4 " + u.runs(t, "hostname") + " | grep -c STREAM", "1\n"},
		{rest, "slurmrestd", "getent passwd 5000", "dora:*:5000:5000:Dora:/home/dora:/bin/bash\n"},
		{rest, "sssd", "grep -h ^CapBnd: /proc/[0-9]*/status | sort -u", "CapBnd:\t0000000000000000\n"},
		{s.name("slurm-controller-0"), "sssd", "grep -h ^CapBnd: /proc/[0-9]*/status | sort -u", "CapBnd:\t0000000000000000\n"},
	} {
		out, err := s.Exec(t.Context(), look.pod, look.container, "sh", "-c", look.command)
		if err != nil || out != look.want {
			t.Errorf("%s in container %s of %s prints %q (%v), want %q", look.command, look.container, look.pod.Name, out, err, look.want)
		}
	}
}

// refuses tries to log in as alice and expects an error.
func (s *scene) refuses(t *testing.T, door *walk.Door, key *login.Key, want string) {
	t.Helper()
	address, release, err := s.Reach(t.Context(), door.Service)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	// A service leads for a moment to a pod that has just gone.
	eventually(t, soon, "login to be refused", func(ctx context.Context) error {
		session, err := login.Dial(ctx, address, "alice", key, door.HostKey)
		if err == nil {
			t.Fatal("it let us in", session.Close())
		}
		if !strings.Contains(err.Error(), want) {
			return fmt.Errorf("logging in failed with %w, not %q", err, want)
		}
		return nil
	})
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

// exchangesWorkload lets a StatefulSet run the login pods, with SSSD, and then a Deployment again, without. Users can log
// in all the time.
func (s *scene) exchangesWorkload(t *testing.T) {
	t.Helper()
	login := &unstructured.Unstructured{}
	login.SetGroupVersionKind(schema.GroupVersionKind{Group: "slinky.slurm.net", Version: "v1beta1", Kind: "LoginSet"})
	login.SetName("login")
	login.SetNamespace(s.namespace)
	// A connection to a pod that is on its way out ends with it, and until the garbage collector has come to the pods of the other
	// workload they take logins.
	look := func(command, what string, fits func(out string) bool) {
		eventually(t, soon, command+" on a login node to print "+what, func(ctx context.Context) error {
			door, err := walk.NewDoor(ctx, s.Kubernetes, s.name("login"), "login")
			if err != nil {
				return err
			}
			session, leave, err := walk.LogIn(ctx, s.Kubernetes, door, "alice", stage.key)
			if err != nil {
				return err
			}
			defer leave()
			out, err := session.Run(ctx, command)
			if err == nil && !fits(strings.TrimSpace(out)) {
				err = fmt.Errorf("it prints %q", out)
			}
			return err
		})
	}
	for _, step := range []struct {
		workload, sssd string
		gone           client.Object
	}{
		{"StatefulSet", `{"name": "sssd", "key": "sssd.conf"}`, &appsv1.Deployment{}},
		{"Deployment", "null", &appsv1.StatefulSet{}},
	} {
		patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec": {"workload": %q, "sssdConfRef": %s}}`, step.workload, step.sssd))
		if err := s.Patch(t.Context(), login, patch); err != nil {
			t.Fatal(err)
		}
		look("true", "nothing", func(out string) bool { return out == "" })
		eventually(t, patient, "the login pods to be those of a "+step.workload, func(ctx context.Context) error {
			err := s.Get(ctx, s.name("login"), step.gone)
			if apierrors.IsNotFound(err) {
				return nil
			}
			return errors.Join(errors.New("there is still the other workload"), err)
		})
		s.awaitCondition(t, patient, login, "Ready", metav1.ConditionTrue)
		look("hostname", "the name of a pod of a "+step.workload, func(name string) bool { return (name == "login-0") == (step.workload == "StatefulSet") })
		look("pgrep --exact --count sssd || true", "whether sssd runs, with sssdConfRef "+step.sssd, func(n string) bool { return (n == "0") == (step.sssd == "null") })
		look("getent --service=sss passwd games || true", "whether SSSD knows the users of its back end", func(out string) bool {
			return strings.HasPrefix(out, "games:") == (step.sssd != "null")
		})
	}
}
