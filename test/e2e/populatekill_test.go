// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

// populate is the command that fills a jail.
const populate = "jail populate"

// fillsInSpiteOfKills kills the copy twice: its process, and then its pod.
func (s *scene) fillsInSpiteOfKills(t *testing.T, cluster *unstructured.Unstructured) {
	dir := s.jailVolume(t)
	begun := time.Now()
	p := stopAmid(t, populate, dir, filesIn(dir, 500))
	first := s.isNoJail(t, cluster, dir)
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	t.Logf("killed after %.1f s and %d files", time.Since(begun).Seconds(), len(first))
	// Nothing comes between: the next run may be over in seconds.
	stopAmid(t, populate, dir, filesIn(dir, len(first)+500))
	eventually(t, soon, "the condition to tell of the attempt before", func(context.Context) error {
		c := s.awaitCondition(t, soon, cluster, "JailPopulated", metav1.ConditionFalse)
		if !strings.Contains(c.Message, "attempt 2") {
			return errors.New(c.Message)
		}
		return nil
	})
	second := s.isNoJail(t, cluster, dir)
	var pods corev1.PodList
	// The copy may have come so far before the kubelet has reported that its pod runs.
	eventually(t, soon, "one pod to fill the jail", func(ctx context.Context) error {
		err := s.List(ctx, &pods, client.InNamespace(s.namespace), client.MatchingLabels{"batch.kubernetes.io/job-name": cluster.GetName() + "-populate-jail"},
			client.MatchingFields{"status.phase": string(corev1.PodRunning)})
		if err == nil && len(pods.Items) != 1 {
			err = fmt.Errorf("%d pods are running", len(pods.Items))
		}
		return err
	})
	if err := s.Delete(t.Context(), &pods.Items[0], client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	t.Logf("deleted after %.1f s and %d files", time.Since(begun).Seconds(), len(second))

	s.awaitCondition(t, patient, cluster, "JailPopulated", metav1.ConditionTrue)
	t.Logf("whole after %.1f s", time.Since(begun).Seconds())
	s.isWhole(t, dir)
	keeps(t, dir, first, second)
}

// filesIn reports whether there are so many files in a directory.
func filesIn(dir string, want int) func() (bool, error) {
	return func() (bool, error) {
		all, err := copied(dir)
		return len(all) >= want, err
	}
}

// copyOf distinguishes a file from another one of the same name.
type copyOf struct {
	inode   uint64
	changed syscall.Timespec
}

// copied returns the files of a jail that are in place. Those with several names are left out, and those on their way.
func copied(dir string) (map[string]copyOf, error) {
	out := map[string]copyOf{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it was on its way
		}
		if err != nil || !d.Type().IsRegular() || strings.HasPrefix(d.Name(), ".populating") {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Nlink == 1 {
			out[path] = copyOf{inode: st.Ino, changed: st.Ctim}
		}
		return nil
	})
	return out, err
}

// isNoJail checks that a jail whose copy is not over does not count as one: by its own files, and for what would use it. It returns the
// files that are in place.
func (s *scene) isNoJail(t *testing.T, cluster *unstructured.Unstructured, dir string) map[string]copyOf {
	t.Helper()
	if _, err := os.Lstat(filepath.Join(dir, "etc/soperator-jail-populated")); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("the jail says that it is whole: %v", err)
	}
	if mode, err := os.ReadFile(filepath.Join(dir, ".populating")); err != nil || string(mode) != "first\n" {
		t.Fatalf("the jail does not say that its first copy is under way: %q, %v", mode, err)
	}
	s.awaitCondition(t, soon, cluster, "JailPopulated", metav1.ConditionFalse)
	for _, list := range []client.ObjectList{&slinkyv1beta1.NodeSetList{}, &slinkyv1beta1.LoginSetList{}} {
		if err := s.List(t.Context(), list, client.InNamespace(s.namespace)); err != nil {
			t.Fatal(err)
		}
		if n := meta.LenList(list); n > 0 {
			t.Errorf("%d objects of %T are there", n, list)
		}
	}
	err := s.Get(t.Context(), s.name(cluster.GetName()+"-sconfigcontroller"), &appsv1.Deployment{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("sconfigcontroller writes into a jail that is none: %v", err)
	}
	files, err := copied(dir)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// keeps checks that files which were in place before a kill have not been copied once more.
func keeps(t *testing.T, dir string, before ...map[string]copyOf) {
	t.Helper()
	after, err := copied(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i, files := range before {
		again := 0
		for path, was := range files {
			if after[path] != was {
				again++
				t.Logf("%s was %+v, is %+v", path, was, after[path])
			}
		}
		if again > 0 || len(files) == 0 || len(files) >= len(after) {
			t.Errorf("of %d files that were there before kill %d, %d were copied again; now there are %d", len(files), i+1, again, len(after))
		}
	}
}

// compares prints what of the image's root file system a jail has not, or has otherwise. What is the pod's, and what populates the jail, is
// left out.
const compares = `
out() { grep -v -e '^etc/hostname' -e '^etc/hosts' -e '^etc/resolv.conf' -e '^usr/local/bin/jail' -e '^usr/local/bin/populate-jail' -e '^usr/local/lib/coxswain'; }
tree() { cd "$1" && find bin etc lib home opt root sbin srv usr var -xdev -printf '%p %y %m %U %G %l\n' | out | sort; }
sums() { cd "$1" && find etc home opt root srv usr var -xdev -type f | out | sort; }
tree / >/tmp/image && tree /mnt/jail >/tmp/jail && comm -23 /tmp/image /tmp/jail >/tmp/missing
cat /tmp/missing
[ ! -s /tmp/missing ]
[ "$(wc -l </tmp/image)" -gt 2000 ]
sums / | tr '\n' '\0' | (cd / && xargs -0 sha256sum) >/tmp/sums
cd /mnt/jail && sha256sum --quiet --check /tmp/sums
`

// isWhole compares a jail with the image that filled it, in a pod of that image.
func (s *scene) isWhole(t *testing.T, dir string) {
	t.Helper()
	if _, err := os.Lstat(filepath.Join(dir, "etc/soperator-jail-populated")); err != nil {
		t.Error(err)
	}
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(filepath.Base(path), ".populating") {
			t.Errorf("%s was left", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "comparer"},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{{
				Name: "comparer", Image: fmt.Sprintf("%s/populate-jail:%s", stage.images.Registry, stage.images.Tag), Command: []string{"bash", "-euc", compares},
				VolumeMounts:             []corev1.VolumeMount{{Name: "jail", MountPath: "/mnt/jail", ReadOnly: true}},
				TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
			}},
			Volumes: []corev1.Volume{{Name: "jail", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "jail"}}}},
		},
	}
	if err := s.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	eventually(t, patient, "the jail to be compared with its image", func(ctx context.Context) error {
		if err := s.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil {
			return err
		}
		switch p.Status.Phase {
		case corev1.PodSucceeded:
			return nil
		case corev1.PodFailed:
			t.Fatalf("the jail is not what the image is: %s", p.Status.ContainerStatuses[0].State.Terminated.Message)
		}
		return fmt.Errorf("its pod is %s", p.Status.Phase)
	})
	if err := s.Delete(t.Context(), p); err != nil {
		t.Error(err)
	}
}
