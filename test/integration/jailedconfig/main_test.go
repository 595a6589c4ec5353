// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package jailedconfig tests the controller of sconfigcontroller against a real API server, a directory and a Slurm in memory.
package jailedconfig

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/yaml"

	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	"github.com/coxswain-hpc/coxswain/internal/controller/nebius/jailedconfig"
	"github.com/coxswain-hpc/coxswain/internal/node/jail"
	"github.com/coxswain-hpc/coxswain/internal/node/jail/batch"
	"github.com/coxswain-hpc/coxswain/internal/operator"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
	"github.com/coxswain-hpc/coxswain/internal/slurm/token"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

func TestMain(m *testing.M) { apiserver.Main(m) }

// world is a running controller, and what it works with.
type world struct {
	*apiserver.Server
	t     *testing.T
	user  client.Client
	dir   string
	slurm *fake.Slurm
}

// Slurmds that have not reread their configuration are asked again after this. For a test that counts how often, it is never.
const (
	never  = time.Hour
	moment = 1500 * time.Millisecond
)

func start(t *testing.T, wait time.Duration) *world {
	t.Helper()
	t.Parallel()
	server := apiserver.Start(t)
	w := &world{Server: server, t: t, user: server.Outsider(t, operator.Scheme()), dir: t.TempDir()}
	key := []byte("0123456789abcdef0123456789abcdef")
	w.slurm = fake.New(fake.Options{Key: key})
	root, err := jail.Open(w.dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	issuer, err := token.NewSigned(key, "slurm", 0)
	if err != nil {
		t.Fatal(err)
	}
	server.Manager(t, operator.Scheme(), func(mgr manager.Manager) error {
		return jailedconfig.Setup(mgr, jailedconfig.Options{
			Writer: &batch.Writer{Tree: batch.Jail(root), Now: time.Now, Parallel: 4},
			Slurm: func(context.Context) (jailedconfig.Slurm, error) {
				return rest.NewClient("http://slurm", issuer, rest.Options{Transport: w.slurm.Transport()})
			},
			Wait: wait, Poll: 50 * time.Millisecond, RetryFirst: 20 * time.Millisecond, RetryLast: 100 * time.Millisecond,
			Concurrency: 1, Clock: clock.RealClock{},
		})
	})
	return w
}

// files makes a ConfigMap.
func (w *world) files(name string, data map[string]string) {
	w.t.Helper()
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.Namespace}, Data: data}
	if err := w.user.Create(w.t.Context(), m); err != nil {
		w.t.Fatal(err)
	}
}

// change changes the data of a ConfigMap.
func (w *world) change(name string, data map[string]string) {
	w.t.Helper()
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.Namespace}}
	err := w.user.Get(w.t.Context(), client.ObjectKeyFromObject(m), m)
	if err == nil {
		m.Data = data
		err = w.user.Update(w.t.Context(), m)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// config makes a JailedConfig, in a group unless that is empty.
func (w *world) config(name, group, spec string) {
	w.t.Helper()
	c := &nebiusv1alpha1.JailedConfig{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.Namespace}}
	if group != "" {
		c.Labels = map[string]string{nebiusv1alpha1.LabelJailedAggregation: group}
	}
	if err := errors.Join(yaml.Unmarshal([]byte(spec), &c.Spec)); err != nil {
		w.t.Fatal(err)
	}
	if err := w.user.Create(w.t.Context(), c); err != nil {
		w.t.Fatal(err)
	}
}

const (
	written = nebiusv1alpha1.ConditionFilesWritten
	acted   = nebiusv1alpha1.ConditionUpdateActionsCompleted
)

// expect waits for the reason of a condition and returns its message.
func (w *world) expect(name, kind, reason string) (message string) {
	w.t.Helper()
	return w.expectSaying(name, kind, reason, "")
}

// expectSaying waits for the reason of a condition with a text in its message.
func (w *world) expectSaying(name, kind, reason, text string) (message string) {
	w.t.Helper()
	apiserver.Eventually(w.t, func() error {
		var c nebiusv1alpha1.JailedConfig
		if err := w.user.Get(w.t.Context(), client.ObjectKey{Namespace: w.Namespace, Name: name}, &c); err != nil {
			return err
		}
		got := meta.FindStatusCondition(c.Status.Conditions, kind)
		if got == nil || got.Reason != reason || got.ObservedGeneration != c.Generation || !strings.Contains(got.Message, text) {
			return fmt.Errorf("%s of %s: %+v, want %s %s", kind, name, c.Status.Conditions, reason, text)
		}
		message = got.Message
		return nil
	})
	return message
}

// read waits for a file of the jail to have a content, and returns its mode.
func (w *world) read(path, want string) fs.FileMode {
	w.t.Helper()
	var mode fs.FileMode
	apiserver.Eventually(w.t, func() error {
		content, err := os.ReadFile(filepath.Join(w.dir, path))
		if err != nil || string(content) != want {
			return fmt.Errorf("%s: %q, %w; want %q", path, content, err, want)
		}
		info, err := os.Stat(filepath.Join(w.dir, path))
		if err == nil {
			mode = info.Mode()
		}
		return err
	})
	return mode
}

// reconfigured returns how often Slurm was asked to read its configuration.
func (w *world) reconfigured() (n int) {
	for _, write := range w.slurm.Writes() {
		if write.Verb == "reconfigure" {
			n++
		}
	}
	return n
}

// expectReconfigured waits until Slurm was asked so often.
func (w *world) expectReconfigured(want int) {
	w.t.Helper()
	apiserver.Eventually(w.t, func() error {
		if n := w.reconfigured(); n != want {
			return fmt.Errorf("reconfigured %d times, want %d", n, want)
		}
		return nil
	})
}
