// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/coxswain-hpc/coxswain/test/walk"
)

// 50 make a benchmark: go test -v ./test/e2e -run TestConfiguration -e2e.edits 50.
var edits = flag.Int("e2e.edits", 8, "`number` of edits of a configuration that are timed; from 50 on those that take too long fail the test")

// editIsLive is the time in which an edit has to be live in slurmctld.
const editIsLive = 5 * time.Second

// controllerObject finds the Controller of a manifest.
func controllerObject(t *testing.T, m walk.Manifest) *unstructured.Unstructured {
	t.Helper()
	for _, o := range m {
		if o.GetKind() == "Controller" {
			return o
		}
	}
	t.Fatal("the manifest has no Controller")
	return nil
}

// setExtraConf edits spec.extraConf of a Controller.
func (s *scene) setExtraConf(t *testing.T, o *unstructured.Unstructured, text string) {
	t.Helper()
	if err := s.patchExtraConf(t, o, text); err != nil {
		t.Fatalf("editing extraConf: %v", err)
	}
}

func (s *scene) patchExtraConf(t *testing.T, o *unstructured.Unstructured, text string) error {
	t.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"extraConf":%q}}`, text)
	return s.Patch(t.Context(), o.DeepCopy(), client.RawPatch(types.MergePatchType, patch))
}

// seesSetting waits until slurmctld shows that a setting has a value, and returns how long that took.
func (u *user) seesSetting(t *testing.T, key, value string) time.Duration {
	t.Helper()
	begin := time.Now()
	what := fmt.Sprintf("slurmctld to say %s = %s", key, value)
	err := walk.Poll(t.Context(), patient, 50*time.Millisecond, what, func(ctx context.Context) error {
		out, err := u.Run(ctx, "scontrol show config | grep -w "+key)
		if err != nil {
			return err
		}
		if !strings.Contains(out, "= "+value) {
			return fmt.Errorf("it says %q", strings.TrimSpace(out))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return time.Since(begin)
}

// An edit of the configuration is live in seconds, and one that slurmctld would not take leaves it as it is.
func TestConfiguration(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	m := s.components(t, "configuration.yaml")
	c := controllerObject(t, m)
	alice := s.enterLoginSet(t, "login", "alice")
	s.awaitCondition(t, soon, c, "ConfigApplied", metav1.ConditionTrue)
	s.awaitCondition(t, soon, c, "VersionSupported", metav1.ConditionTrue)

	var took []time.Duration
	for i := range *edits {
		s.setExtraConf(t, c, fmt.Sprintf("KillWait=%d\n", 31+i))
		took = append(took, alice.seesSetting(t, "KillWait", fmt.Sprintf("%d sec", 31+i)))
	}
	slices.Sort(took)
	slow := slices.IndexFunc(took, func(d time.Duration) bool { return d > editIsLive })
	t.Logf("%d edits were live after p50 %s, p99 %s", len(took), took[len(took)/2].Round(time.Millisecond), took[(len(took)*99)/100].Round(time.Millisecond))
	// A few edits, beside other tests, prove nothing about the slowest of a hundred.
	if *edits >= 50 && slow >= 0 && (len(took)-slow)*100 > len(took) {
		t.Errorf("%d of %d edits took longer than %s: %v", len(took)-slow, len(took), editIsLive, took)
	}
	last := fmt.Sprintf("KillWait=%d\n", 30+*edits)
	applied := s.awaitCondition(t, soon, c, "ConfigApplied", metav1.ConditionTrue)
	if digest := s.configDigest(t, c); !strings.HasSuffix(applied.Message, digest) || digest == "" {
		t.Errorf("ConfigApplied says %q, and status.configDigest is %s", applied.Message, digest)
	}
	pod := s.pod(t, "slurm-controller-0")

	const quote = `line 2: SlurmctldTimeout: "soon" is not a number`
	if err := s.patchExtraConf(t, c, last+"SlurmctldTimeout=soon\n"); err == nil {
		s.expectConfigRefused(t, c, "InvalidConfiguration", quote)
	} else if !strings.Contains(err.Error(), quote) {
		t.Errorf("the webhook refuses it with %v", err)
	}
	// The operator does not know which plugins there are; slurmctld's own tools do.
	s.setExtraConf(t, c, last+"HashPlugin=hash/nosuch\n")
	s.expectConfigRefused(t, c, "ConfigRejected", "hash/nosuch")
	alice.seesSetting(t, "KillWait", fmt.Sprintf("%d sec", 30+*edits))
	s.setExtraConf(t, c, last)
	s.awaitCondition(t, soon, c, "ConfigApplied", metav1.ConditionTrue)
	s.awaitCondition(t, soon, c, "Stalled", metav1.ConditionFalse)
	s.losesConfiguration(t)
	if now := s.pod(t, pod.Name); now.UID != pod.UID || now.Status.ContainerStatuses[0].RestartCount > 0 {
		t.Errorf("slurmctld was restarted by a configuration that it does not take: %+v", now.Status.ContainerStatuses)
	}

	// slurmctld goes while its configuration changes, which arrives nevertheless.
	s.setExtraConf(t, c, "KillWait=99\n")
	s.awaitPod(t, pod.Name, s.deletePod(t, pod.Name))
	alice.seesSetting(t, "KillWait", "99 sec")
	s.awaitCondition(t, soon, c, "ConfigApplied", metav1.ConditionTrue)
}

// losesConfiguration deletes the ConfigMap that slurmctld's configuration is mounted from, which comes back as it was.
func (s *scene) losesConfiguration(t *testing.T) {
	t.Helper()
	var before corev1.ConfigMap
	if err := s.Get(t.Context(), s.name("slurm-config"), &before); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(t.Context(), before.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	eventually(t, soon, "the ConfigMap to come back", func(ctx context.Context) error {
		var now corev1.ConfigMap
		if err := s.Get(ctx, s.name(before.Name), &now); err != nil {
			return err
		}
		if now.UID == before.UID || !maps.Equal(now.Data, before.Data) {
			return errors.New("it is not deleted yet, or has another content")
		}
		return nil
	})
}

func (s *scene) configDigest(t *testing.T, o *unstructured.Unstructured) string {
	t.Helper()
	live := o.DeepCopy()
	if err := s.Get(t.Context(), s.name(o.GetName()), live); err != nil {
		t.Fatal(err)
	}
	digest, _, _ := unstructured.NestedString(live.Object, "status", "configDigest")
	return digest
}

// expectConfigRefused waits until the conditions of a Controller quote why its configuration is not taken.
func (s *scene) expectConfigRefused(t *testing.T, o *unstructured.Unstructured, reason, quote string) {
	t.Helper()
	eventually(t, soon, "the configuration to be refused with "+reason, func(ctx context.Context) error {
		live := o.DeepCopy()
		if err := s.Get(ctx, s.name(o.GetName()), live); err != nil {
			return err
		}
		found := 0
		for _, c := range walk.Conditions(live) {
			if (c.Type == "ConfigApplied" || c.Type == "Stalled") && c.Reason == reason && strings.Contains(c.Message, quote) {
				found++
			}
		}
		if found != 2 {
			return fmt.Errorf("its conditions are %v", walk.Conditions(live))
		}
		return nil
	})
}
