// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/controller/worker/workerplan"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
	"github.com/coxswain-hpc/coxswain/internal/slurm/token"
)

// A Slurm cache ends with every cluster that is deleted, while its workers are being drained. That is no error.
func TestAWriteToALinkThatHasEndedIsNoFailure(t *testing.T) {
	issuer, err := token.NewSigned([]byte("key"), "slurm", 0)
	if err != nil {
		t.Fatal(err)
	}
	l, err := slurmcache.New(slurmcache.Key{Namespace: "n", Name: "c"}, slurmcache.Config{Endpoint: "http://slurm:6820", Issuer: issuer}, slurmcache.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	l.Run(ended)
	r := &reconciler{}
	r.Clock = clock.RealClock{}
	for name, action := range map[string]workerplan.StateChange{
		"a drain": {Drain: "slurm-operator: r"}, "an undrain": {Undrain: true}, "a revival": {Revive: true},
	} {
		s := &scope{
			pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "w-0"}}, set: &slinkyv1beta1.NodeSet{},
			node: "w-0", cache: l, action: workerplan.Action{StateChange: action},
		}
		if !r.setState(t.Context(), s) {
			t.Errorf("%s: the rest does not wait", name)
		}
		if pod := client.ObjectKeyFromObject(s.pod); r.memory.pending.has(pod) || r.memory.retries.pods.Get(pod).change != "" {
			t.Errorf("%s: %+v", name, r.memory.retries.pods.Get(pod))
		}
	}
}

// A Slurm cache that does not run never answers. Five hundred workers that wait for it would use up the concurrency.
func TestNoReconcileWaitsForSlurmToChangeAState(t *testing.T) {
	issuer, err := token.NewSigned([]byte("key"), "slurm", 0)
	if err != nil {
		t.Fatal(err)
	}
	silent, err := slurmcache.New(slurmcache.Key{Namespace: "n", Name: "c"}, slurmcache.Config{Endpoint: "http://slurm:6820", Issuer: issuer}, slurmcache.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := &reconciler{}
	r.Clock = clock.RealClock{}
	s := &scope{
		pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "w-0"}}, set: &slinkyv1beta1.NodeSet{},
		node: "w-0", cache: silent, action: workerplan.Action{StateChange: workerplan.StateChange{Drain: "slurm-operator: r"}},
	}
	if !r.setState(t.Context(), s) {
		t.Error("the rest does not wait until it is known what became of the drain")
	}
	if !r.memory.pending.has(client.ObjectKeyFromObject(s.pod)) {
		t.Error("something is decided about the worker before it is known what became of its drain")
	}
}
