// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// A worker that fills its ephemeral storage is drained, by what a real kubelet reports, and comes back when the file is gone. A kubelet
// looks at volumes once a minute, and so does the operator at kubelets.
func TestEphemeralStorage(t *testing.T) {
	needsTime(t)
	s := newScene(t)
	s.sets(t, `ephemeralStorageCheck.enabled=true,extraArgs=["--kubelet-insecure-skip-tls-verify"]`, `ephemeralStorageCheck.enabled=false,extraArgs=[]`)
	s.components(t, "storage.yaml")
	node := func(ctx context.Context) (string, error) {
		return s.Exec(ctx, s.name("slurm-controller-0"), "slurmctld", "scontrol", "show", "node", "cpu-0")
	}
	const reason = "[user_problem] pod_ephemeral_storage"
	worker := s.pod(t, "cpu-0").UID
	if out, err := s.Exec(t.Context(), s.name("cpu-0"), "slurmd", "dd", "if=/dev/zero", "of=/var/tmp/full", "bs=1M", "count=370"); err != nil {
		t.Fatalf("filling the storage: %v: %s", err, out)
	}
	began := time.Now()
	eventually(t, patient, "cpu-0 to be drained", func(ctx context.Context) error {
		out, err := node(ctx)
		if err == nil && (!strings.Contains(out, reason) || !strings.Contains(out, "DRAIN")) {
			err = errors.New(out)
		}
		return err
	})
	t.Logf("drained after %.0f s", time.Since(began).Seconds())
	s.saysOutOfService(t, "cpu-0", "EphemeralStorage")
	if out, err := s.Exec(t.Context(), s.name("cpu-0"), "slurmd", "rm", "/var/tmp/full"); err != nil {
		t.Fatalf("deleting the file: %v: %s", err, out)
	}
	began = time.Now()
	eventually(t, patient, "cpu-0 to be undrained", func(ctx context.Context) error {
		out, err := node(ctx)
		if err == nil && (strings.Contains(out, reason) || strings.Contains(out, "DRAIN")) {
			err = errors.New(out)
		}
		return err
	})
	t.Logf("undrained after %.0f s", time.Since(began).Seconds())
	s.saysOutOfService(t, "cpu-0", "")
	if p := s.pod(t, "cpu-0"); p.UID != worker {
		t.Errorf("the worker is another one: %s", p.UID)
	}
}
