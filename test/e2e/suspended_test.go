// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

// keepsSuspended shrinks a NodeSet to nothing while the only job of its last worker is suspended. To Slurm the node is drained.
func keepsSuspended(t *testing.T, s *scene, alice *user) {
	job, release := alice.submitsBlocked(t, "--partition=cpu", "--nodelist=cpu-2", "--output=/dev/null")
	before := s.pod(t, "numbered-2").UID
	s.suspends(t, alice, job)
	s.changeNodeSet(t, "numbered", func(n *slinkyv1beta1.NodeSet) { n.Spec.Replicas = new(int32(0)) })
	alice.seesNode(t, "cpu-2", "drained")
	want := fmt.Sprintf("waiting for job %d", job)
	eventually(t, soon, "the worker to wait for the suspended job", func(context.Context) error {
		for _, c := range s.pod(t, "numbered-2").Status.Conditions {
			if c.Type == "coxswain.dev/Retiring" && strings.HasPrefix(c.Message, want) && strings.Contains(c.Message, ", which is suspended (") {
				return nil
			}
		}
		return fmt.Errorf("it says %+v", s.pod(t, "numbered-2").Status.Conditions)
	})
	s.keeps(t, "numbered-2", before, nil)
	s.resumes(t, alice, job)
	release(t)
	alice.awaits(t, job, "COMPLETED")
	s.awaitNoPod(t, "numbered-2")
}

// staysWhileSuspended suspends the job for which kubectl drain waits, and resumes it. To Slurm the node is drained meanwhile.
func (s *scene) staysWhileSuspended(t *testing.T, alice *user, worker string, job int, drained <-chan error) {
	t.Helper()
	before := s.pod(t, worker).UID
	s.suspends(t, alice, job)
	alice.seesNode(t, worker, "drained")
	eventually(t, soon, "the operator to see that "+worker+" looks idle", func(context.Context) error {
		for _, c := range s.pod(t, worker).Status.Conditions {
			if string(c.Type) == "SlurmNodeStateIdle" {
				return nil
			}
		}
		return errors.New("the pod does not say so")
	})
	s.keeps(t, worker, before, drained)
	s.resumes(t, alice, job)
}

// keeps checks that a worker is neither deleted nor evicted for as long as kubectl drain needs for its next try.
func (s *scene) keeps(t *testing.T, worker string, uid types.UID, drained <-chan error) {
	t.Helper()
	over := time.After(7 * time.Second) // it tries every five seconds
	for again := time.Tick(often); ; {
		err := s.SubResource("eviction").Create(t.Context(), s.pod(t, worker), &policyv1.Eviction{
			DeleteOptions: &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}},
		})
		if !apierrors.IsTooManyRequests(err) {
			t.Fatalf("%s, whose job is suspended, may be evicted: %v", worker, err)
		}
		if p := s.pod(t, worker); p.UID != uid || p.DeletionTimestamp != nil {
			t.Fatalf("%s goes while its job is suspended", worker)
		}
		select {
		case err := <-drained:
			t.Fatalf("kubectl drain did not wait for the suspended job: %v", err)
		case <-over:
			return
		case <-again:
		}
	}
}

func (s *scene) suspends(t *testing.T, alice *user, job int) {
	t.Helper()
	s.scontrol(t, "suspend", strconv.Itoa(job))
	alice.awaits(t, job, "SUSPENDED")
}

func (s *scene) resumes(t *testing.T, alice *user, job int) {
	t.Helper()
	alice.awaits(t, job, "SUSPENDED")
	s.scontrol(t, "resume", strconv.Itoa(job))
	alice.awaits(t, job, "RUNNING")
}

// scontrol is what only an administrator of Slurm may do.
func (s *scene) scontrol(t *testing.T, args ...string) {
	t.Helper()
	if _, err := s.Exec(t.Context(), s.name("slurm-controller-0"), "slurmctld", append([]string{"scontrol"}, args...)...); err != nil {
		t.Fatal(err)
	}
}
