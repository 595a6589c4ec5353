// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	"github.com/coxswain-hpc/coxswain/test/walk"
)

// rests puts the cluster to rest while a job runs and another waits, and brings it back.
func rests(t *testing.T, c *slurmCluster, alice *user) {
	nowhere := []string{"--chdir=/tmp", "--output=/dev/null"}
	finished := alice.completes(t)
	pending := alice.submits(t, "true\n", append(nowhere, "--hold")...)
	alice.awaits(t, pending, "PENDING")
	running := alice.submits(t, "sleep 20\n", nowhere...)
	alice.awaits(t, running, "RUNNING")
	before := c.kept(t)

	began := time.Now()
	c.change(t, string(nebiusv1.MaintenanceDownscale), "spec", "maintenance")
	eventually(t, patient, "the cluster to come to rest", func(ctx context.Context) error {
		live := c.object()
		if err := c.Get(ctx, c.sample.Name(), live); err != nil {
			return err
		}
		for _, condition := range live.Status.Conditions {
			if condition.Type != "Ready" || live.Status.ObservedGeneration != live.Generation {
				continue
			}
			if condition.Status != metav1.ConditionTrue || condition.Reason != nebiusv1.ReasonMaintenance {
				return fmt.Errorf("it says %s: %s", condition.Reason, condition.Message)
			}
			return nil
		}
		return fmt.Errorf("it says %+v", live.Status)
	})
	t.Logf("at rest after %.1f s, of which a job took 20", time.Since(began).Seconds())
	var pods corev1.PodList
	if err := c.List(t.Context(), &pods, client.InNamespace(c.namespace)); err != nil {
		t.Fatal(err)
	}
	for i := range pods.Items {
		if p := &pods.Items[i]; p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
			t.Errorf("Pod %s is %s at rest", p.Name, p.Status.Phase)
		}
	}

	began = time.Now()
	c.change(t, string(nebiusv1.MaintenanceNone), "spec", "maintenance")
	c.awaitAvailable(t)
	t.Logf("available again after %.1f s", time.Since(began).Seconds())
	if diff := cmp.Diff(before, c.kept(t)); diff != "" {
		t.Errorf("other keys or claims (-before +after):\n%s", diff)
	}
	door, err := walk.DoorOf(t.Context(), c.Kubernetes, c.sample.Name())
	if err != nil {
		t.Fatal(err)
	}
	alice = c.enter(t, door, c.sample.User)
	alice.awaits(t, pending, "PENDING")
	alice.runs(t, fmt.Sprintf("scontrol release %d", pending))
	alice.awaits(t, pending, "COMPLETED")
	for _, job := range []int{finished, running, pending} {
		alice.seesAccounted(t, job)
	}
}

// kept returns the UIDs of Secrets and claims, by kind and name.
func (s *scene) kept(t *testing.T) map[string]types.UID {
	t.Helper()
	var secrets corev1.SecretList
	var claims corev1.PersistentVolumeClaimList
	for _, list := range []client.ObjectList{&secrets, &claims} {
		if err := s.List(t.Context(), list, client.InNamespace(s.namespace)); err != nil {
			t.Fatal(err)
		}
	}
	out := map[string]types.UID{}
	for i := range secrets.Items {
		out["Secret "+secrets.Items[i].Name] = secrets.Items[i].UID
	}
	for i := range claims.Items {
		out["PersistentVolumeClaim "+claims.Items[i].Name] = claims.Items[i].UID
	}
	return out
}
