// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	coxswain "github.com/coxswain-hpc/coxswain/internal/operator"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

// history is how the status of some objects has changed, by kind and condition: a text like "True False True". Phases count as
// conditions.
type history struct {
	mu   sync.Mutex
	seen map[string][]string
}

func (h *history) add(what, value string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if all := h.seen[what]; len(all) == 0 || all[len(all)-1] != value {
		h.seen[what] = append(all, value)
	}
}

func (h *history) all() map[string]string {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := map[string]string{}
	for what, values := range h.seen {
		out[what] = strings.Join(values, " ")
	}
	return out
}

// forget begins anew with what is now.
func (h *history) forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for what, values := range h.seen {
		h.seen[what] = values[len(values)-1:]
	}
}

// follow keeps the history of the SlurmCluster, its NodeSet and its Controller until the test ends.
func follow(t *testing.T, o *operator.Operator) *history {
	t.Helper()
	h := &history{seen: map[string][]string{}}
	c, err := client.NewWithWatch(o.Config, client.Options{Scheme: coxswain.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	t.Cleanup(func() { cancel(); done.Wait() })
	for _, list := range []client.ObjectList{&nebiusv1.SlurmClusterList{}, &nebiusv1alpha1.NodeSetList{}, &slinkyv1beta1.ControllerList{}} {
		stream, err := c.Watch(ctx, list, client.InNamespace(o.Namespace))
		if err != nil {
			t.Fatal(err)
		}
		done.Go(func() {
			defer stream.Stop()
			for event := range stream.ResultChan() {
				var conditions []metav1.Condition
				kind := ""
				switch obj := event.Object.(type) {
				case *nebiusv1.SlurmCluster:
					kind, conditions = "SlurmCluster", obj.Status.Conditions
					h.add(kind+" phase", string(obj.Status.Phase))
				case *nebiusv1alpha1.NodeSet:
					kind, conditions = "NodeSet", obj.Status.Conditions
					h.add(kind+" phase", string(obj.Status.Phase))
				case *slinkyv1beta1.Controller:
					kind, conditions = "Controller", obj.Status.Conditions
				}
				for _, condition := range conditions {
					h.add(kind+" "+condition.Type, string(condition.Status))
				}
			}
		})
	}
	return h
}
