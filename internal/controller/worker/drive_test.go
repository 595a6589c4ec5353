// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/link"
	"github.com/coxswain-hpc/coxswain/internal/nodeset"
	"github.com/coxswain-hpc/coxswain/internal/slurm/token"
)

// A link ends with every cluster that is deleted, while its workers are being drained. That is nothing to complain about.
func TestAWriteToALinkThatHasEndedIsNoFailure(t *testing.T) {
	issuer, err := token.NewSigned([]byte("key"), "slurm", 0)
	if err != nil {
		t.Fatal(err)
	}
	l, err := link.New(link.Key{Namespace: "n", Name: "c"}, link.Config{Endpoint: "http://slurm:6820", Issuer: issuer}, link.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	l.Run(ended)
	r := &reconciler{}
	r.Clock = clock.RealClock{}
	for name, action := range map[string]nodeset.Action{
		"a drain": {Drain: "slurm-operator: r"}, "an undrain": {Undrain: true}, "a revival": {Revive: true},
	} {
		s := &scope{
			pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "w-0"}}, set: &slinkyv1beta1.NodeSet{},
			node: "w-0", link: l, action: action,
		}
		if waits, err := r.setState(t.Context(), s); !waits || err != nil {
			t.Errorf("%s: the rest waits: %t, %v", name, waits, err)
		}
	}
}
