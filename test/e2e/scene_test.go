// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/coxswain-hpc/coxswain/test/walk"
)

const (
	// soon is the time for what needs a reconcile and an answer of Slurm. It takes seconds, and many times that on a machine that has
	// other work to do: the operator asks a slow slurmrestd seldom.
	soon = 5 * time.Minute
	// patient is the time for what needs pods to start.
	patient = 8 * time.Minute
	// often is the time between two looks.
	often = 250 * time.Millisecond
)

// scene is the namespace of a test.
type scene struct {
	*walk.Kubernetes
	namespace string
}

// newScene makes a namespace for a test. When the test has failed, what it looks like is logged and kept in out/e2e.
func newScene(t *testing.T) *scene {
	t.Helper()
	return newSceneIn(t, "e2e-"+strings.ToLower(strings.TrimPrefix(t.Name(), "Test")))
}

// newSceneIn is newScene with another name of the namespace.
func newSceneIn(t *testing.T, namespace string) *scene {
	t.Helper()
	if stage.skip != "" {
		t.Skip(stage.skip)
	}
	s := &scene{Kubernetes: stage.k, namespace: namespace}
	s.clear(t)
	if err := s.EnsureNamespace(t.Context(), s.namespace); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.leave(t) })
	return s
}

// needsTime skips a test that "make e2e" leaves out to save time.
func needsTime(t *testing.T) {
	t.Helper()
	if !*long {
		t.Skip("-e2e.long is not given")
	}
}

// clear removes what an earlier run left.
func (s *scene) clear(t *testing.T) {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
	eventually(t, patient, "the namespace of an earlier run to go", func(ctx context.Context) error {
		err := s.Delete(ctx, namespace)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(fmt.Errorf("namespace %s is still there", s.namespace), err)
	})
}

func (s *scene) leave(t *testing.T) {
	ctx := context.WithoutCancel(t.Context())
	if t.Failed() {
		s.dump(ctx, t)
	}
	if *keep {
		return
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
	if err := s.Delete(ctx, namespace); client.IgnoreNotFound(err) != nil {
		t.Errorf("deleting the namespace %s: %v", s.namespace, err)
	}
}

// dump logs what is not as it should be, and writes everything else to a file.
func (s *scene) dump(ctx context.Context, t *testing.T) {
	ctx, cancel := context.WithTimeout(ctx, soon)
	defer cancel()
	t.Log(s.Report(ctx, s.namespace))
	dir := stage.repository.Path("out", "e2e")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Logf("making the directory of dumps: %v", err)
		return
	}
	path := filepath.Join(dir, s.namespace+".txt")
	f, err := os.Create(path)
	if err != nil {
		t.Logf("writing a dump: %v", err)
		return
	}
	defer func() { _ = f.Close() }()
	s.Describe(ctx, f, s.namespace, 500, true)
	s.Describe(ctx, f, walk.Operator.Namespace, 2000, true)
	t.Logf("all of it is in %s", path)
}

// apply applies a manifest to the scene's namespace.
func (s *scene) apply(t *testing.T, m walk.Manifest) {
	t.Helper()
	if err := s.ApplyManifest(t.Context(), m.In(s.namespace)); err != nil {
		t.Fatal(err)
	}
}

// components applies a file below testdata and waits until all the components in it are ready, with all of their pods and
// none restarted.
func (s *scene) components(t *testing.T, name string) walk.Manifest {
	t.Helper()
	m := s.manifest(t, name)
	s.apply(t, m)
	s.awaitReady(t, m)
	s.sound(t)
	return m
}

// sound fails the test when a pod of the scene is not ready, or has been restarted.
func (s *scene) sound(t *testing.T) {
	t.Helper()
	if err := s.AwaitSound(t.Context(), nil, soon, s.namespace); err != nil {
		t.Fatal(err)
	}
}

// awaitReady waits for all components of a manifest.
func (s *scene) awaitReady(t *testing.T, m walk.Manifest) {
	t.Helper()
	for _, o := range m {
		if o.GroupVersionKind().Group == "slinky.slurm.net" {
			s.awaitCondition(t, patient, o, "Ready", metav1.ConditionTrue)
		}
	}
}

// manifest reads a file below testdata and replaces what stands for values that differ from run to run; more are pairs of a
// word and what it stands for.
func (s *scene) manifest(t *testing.T, name string, more ...string) walk.Manifest {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	old := walk.Images{Registry: stage.images.Registry, Tag: stage.images.Tag, Suite: "trixie"}
	filled := strings.NewReplacer(append(more,
		"SSH_KEY", stage.key.AuthorizedKey(), "REGISTRY", old.Registry, "TAG_24_11", old.Release(), "TAG_CURRENT", stage.images.Tag,
	)...).Replace(string(text))
	m, err := walk.ParseManifest([]byte(filled))
	if err != nil {
		t.Fatalf("parsing testdata/%s: %v", name, err)
	}
	return m.In(s.namespace)
}

func (s *scene) name(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: s.namespace, Name: name}
}

// awaitCondition waits until an object has a condition with this status and returns it.
func (s *scene) awaitCondition(t *testing.T, within time.Duration, o *unstructured.Unstructured, kind string, status metav1.ConditionStatus) metav1.Condition {
	t.Helper()
	var found metav1.Condition
	what := fmt.Sprintf("condition %s of %s %s to be %s", kind, o.GetKind(), o.GetName(), status)
	eventually(t, within, what, func(ctx context.Context) error {
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(o.GroupVersionKind())
		if err := s.Get(ctx, s.name(o.GetName()), live); err != nil {
			return err
		}
		for _, c := range walk.Conditions(live) {
			if c.Type == kind {
				if found = c; c.Status == status {
					return nil
				}
				return fmt.Errorf("it is %s: %s: %s", c.Status, c.Reason, c.Message)
			}
		}
		return fmt.Errorf("there is no such condition, but %v", walk.Conditions(live))
	})
	return found
}

// pod returns a pod of the scene.
func (s *scene) pod(t *testing.T, name string) *corev1.Pod {
	t.Helper()
	var p corev1.Pod
	if err := s.Get(t.Context(), s.name(name), &p); err != nil {
		t.Fatalf("reading the pod %s: %v", name, err)
	}
	return &p
}

// awaitPod waits for a ready pod of that name which is not the one with the given UID.
func (s *scene) awaitPod(t *testing.T, name string, not types.UID) {
	t.Helper()
	eventually(t, patient, "a new pod "+name+" to be ready", func(ctx context.Context) error {
		var p corev1.Pod
		if err := s.Get(ctx, s.name(name), &p); err != nil {
			return err
		}
		switch {
		case p.UID == not:
			return errors.New("it is still the old one")
		case !walk.IsReady(&p):
			return fmt.Errorf("it is %s and not ready", p.Status.Phase)
		}
		return nil
	})
}

// awaitNoPod waits until there is no pod of that name.
func (s *scene) awaitNoPod(t *testing.T, name string) {
	t.Helper()
	eventually(t, patient, "pod "+name+" to go", func(ctx context.Context) error {
		err := s.Get(ctx, s.name(name), &corev1.Pod{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("it is still there"), err)
	})
}

// deletePod deletes a pod and returns the UID that it had.
func (s *scene) deletePod(t *testing.T, name string) types.UID {
	t.Helper()
	p := s.pod(t, name)
	if err := s.Delete(t.Context(), p); err != nil {
		t.Fatalf("deleting the pod %s: %v", name, err)
	}
	return p.UID
}

// enter logs in through a door until the test ends.
func (s *scene) enter(t *testing.T, d *walk.Door, name string) *user {
	t.Helper()
	session, leave, err := walk.LogIn(t.Context(), s.Kubernetes, d, name, stage.key)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(leave)
	return &user{Session: session}
}

// eventually waits until check returns nil.
func eventually(t *testing.T, within time.Duration, what string, check func(context.Context) error) {
	t.Helper()
	if err := walk.Poll(t.Context(), within, often, what, check); err != nil {
		t.Fatal(err)
	}
}
