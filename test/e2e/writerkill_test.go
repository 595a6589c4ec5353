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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
)

// writer is the command that writes files into a jail.
const writer = "sconfigcontroller"

// manyFiles is how many files one JailedConfig has.
const manyFiles = 1000

// group are many files of one JailedConfig.
type group struct {
	*scene
	// dir is where this machine has them.
	dir string
}

// newGroup makes a JailedConfig with a first version of many files, and waits for them.
func (s *scene) newGroup(t *testing.T) *group {
	t.Helper()
	g := &group{scene: s, dir: filepath.Join(s.jailVolume(t), "etc/slurm/many")}
	config := &nebiusv1alpha1.JailedConfig{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "many"},
		Spec:       nebiusv1alpha1.JailedConfigSpec{ConfigMap: nebiusv1alpha1.ConfigMapReference{Name: "many"}},
	}
	for i := range manyFiles {
		key := fmt.Sprintf("file-%03d", i)
		config.Spec.Items = append(config.Spec.Items, nebiusv1alpha1.JailedConfigItem{Key: key, Path: "/etc/slurm/many/" + key})
	}
	if err := s.Create(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	g.change(t, 1)
	made := time.Now()
	g.awaitAll(t, 1)
	t.Logf("%d files are in the jail %.1f s after their ConfigMap", manyFiles, time.Since(made).Seconds())
	return g
}

// change makes all files those of another version.
func (g *group) change(t *testing.T, version int) {
	t.Helper()
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: g.namespace, Name: "many"}, Data: map[string]string{}}
	for i := range manyFiles {
		m.Data[fmt.Sprintf("file-%03d", i)] = content(i, version)
	}
	err := g.Update(t.Context(), m)
	if version == 1 {
		err = g.Create(t.Context(), m)
	}
	if err != nil {
		t.Error(err)
	}
}

// content is the content of a file in a version.
func content(file, version int) string {
	return strings.Repeat(fmt.Sprintf("line of file %d in version %d\n", file, version), 15)
}

// look counts the files of the old and of the new version. Anything else is an error. left are the files on their way, and
// those that were replaced.
func (g *group) look(version int) (old, now, left int, err error) {
	entries, err := os.ReadDir(g.dir)
	if err != nil {
		return 0, 0, 0, err
	}
	for _, e := range entries {
		if strings.Contains(e.Name(), "-sconfigcontroller-") {
			left++
		}
	}
	for i := range manyFiles {
		path := filepath.Join(g.dir, fmt.Sprintf("file-%03d", i))
		text, err := os.ReadFile(path)
		switch {
		case err != nil:
			return 0, 0, 0, err
		case string(text) == content(i, version):
			now++
		case string(text) == content(i, version-1):
			old++
		default:
			return 0, 0, 0, fmt.Errorf("%s is of no version: %q", path, text)
		}
	}
	return old, now, left, nil
}

// awaitAll waits until all files are of a version, and nothing else is there.
func (g *group) awaitAll(t *testing.T, version int) {
	t.Helper()
	eventually(t, patient, fmt.Sprintf("all files to be of version %d", version), func(context.Context) error {
		old, now, left, err := g.look(version)
		if version == 1 && errors.Is(err, os.ErrNotExist) {
			return errors.New("some are not there")
		}
		if err != nil {
			t.Fatal(err)
		}
		if now != manyFiles || left > 0 {
			return fmt.Errorf("%d are, %d are old, and %d names are left", now, old, left)
		}
		return nil
	})
}

// writesInSpiteOfKills kills sconfigcontroller while it writes new files beside the old ones, and while it exchanges them.
func (s *scene) writesInSpiteOfKills(t *testing.T) {
	g := s.newGroup(t)
	for i, moment := range []struct {
		name string
		amid func(version int) (bool, error)
	}{
		{"staging", g.stages},
		{"exchanging", g.exchanges},
	} {
		version := i + 2
		p := g.stopAmidChange(t, version, moment.amid)
		old, now, left, err := g.look(version)
		if t.Logf("stopped while %s: %d files are old, %d new, %d on their way or replaced", moment.name, old, now, left); err != nil || left == 0 {
			t.Errorf("it was stopped too late, or the files are wrong: %v", err)
		}
		killed := time.Now()
		if err := p.Kill(); err != nil {
			t.Fatal(err)
		}
		g.awaitAll(t, version)
		t.Logf("all files are new %.1f s after it was killed", time.Since(killed).Seconds())
	}
}

// stages reports whether new files are being written.
func (g *group) stages(int) (bool, error) {
	names, err := filepath.Glob(filepath.Join(g.dir, "*-sconfigcontroller-*"))
	return len(names) > 0, err
}

// exchanges reports whether the first file of the group is new.
func (g *group) exchanges(version int) (bool, error) {
	text, err := os.ReadFile(filepath.Join(g.dir, "file-000"))
	return string(text) == content(0, version), err
}

// stopAmidChange stops sconfigcontroller while it makes all files new. It is stopped when they are changed: it needs less time for all of
// them than a busy machine for finding it.
func (g *group) stopAmidChange(t *testing.T, version int, amid func(version int) (bool, error)) *os.Process {
	t.Helper()
	changed := false
	return stopAmid(t, writer, g.jailVolume(t), func() (bool, error) {
		if !changed {
			g.change(t, version)
			changed = true
		}
		return amid(version)
	})
}
