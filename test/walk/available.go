// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
)

// AwaitAvailable waits until a SlurmCluster is available as its present spec asks, and prints meanwhile which conditions
// change and what is waited for. On failure the error has what is not ready, with events and logs.
func AwaitAvailable(ctx context.Context, k *Kubernetes, p *Progress, name types.NamespacedName, within time.Duration) error {
	waiting, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("it is not available after %s", within))
	defer cancel()
	err := follow(waiting, k, name, newTeller(p).tell)
	if err != nil {
		return errors.Join(fmt.Errorf("waiting for SlurmCluster %s: %w", name, err), k.Report(ctx, name.Namespace))
	}
	return nil
}

// follow calls see with every state of a SlurmCluster until it returns true.
func follow(ctx context.Context, k *Kubernetes, name types.NamespacedName, see func(*nebiusv1.SlurmCluster) bool) error {
	for {
		// A watch may end at any time and begins with the present state.
		w, err := k.Watch(ctx, &nebiusv1.SlurmClusterList{}, client.InNamespace(name.Namespace), client.MatchingFields{"metadata.name": name.Name})
		if err != nil {
			return fmt.Errorf("watching it: %w", orCause(ctx, err))
		}
		done, err := drain(ctx, w, see)
		w.Stop()
		if done || err != nil {
			return err
		}
	}
}

func drain(ctx context.Context, w watch.Interface, see func(*nebiusv1.SlurmCluster) bool) (done bool, err error) {
	for {
		select {
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case event, open := <-w.ResultChan():
			if !open {
				return false, nil
			}
			if event.Type == watch.Deleted {
				return false, errors.New("it was deleted")
			}
			if c, ok := event.Object.(*nebiusv1.SlurmCluster); ok && see(c) {
				return true, nil
			}
		}
	}
}

func orCause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// Available reports whether a SlurmCluster is as its present spec asks.
func Available(c *nebiusv1.SlurmCluster) bool {
	return c.Status.ObservedGeneration == c.Generation && c.Status.Phase == nebiusv1.PhaseAvailable
}

// teller prints changes of conditions.
type teller struct {
	progress *Progress
	told     map[string]string
}

func newTeller(p *Progress) *teller { return &teller{progress: p, told: map[string]string{}} }

func (t *teller) tell(c *nebiusv1.SlurmCluster) bool {
	missing := map[string]bool{}
	for _, condition := range c.Status.Conditions {
		component, isComponent := strings.CutSuffix(condition.Type, "Available")
		good := asItShouldBe(condition)
		if isComponent && !good {
			missing[strings.ToLower(component)] = true
		}
		text := string(condition.Status) + condition.Reason + condition.Message
		before, known := t.told[condition.Type]
		t.told[condition.Type] = text
		switch {
		case before == text, isSummary(condition.Type), !known && condition.Status == metav1.ConditionUnknown:
		case isComponent && condition.Reason == nebiusv1.ReasonDisabled:
		case isComponent && good:
			t.progress.Say("  %s", sentence(condition))
		case !good && condition.Message != "":
			t.progress.Say("  %s", sentence(condition))
		}
	}
	switch {
	case len(c.Status.Conditions) == 0:
		t.progress.Waiting("the operator to look at it")
	case len(missing) > 0:
		t.progress.Waiting("%s", strings.Join(slices.Sorted(maps.Keys(missing)), ", "))
	default:
		t.progress.Waiting("phase Available")
	}
	return Available(c)
}

// isSummary reports whether a condition repeats in other words those of the components.
func isSummary(condition string) bool {
	return condition == nebiusv1.ConditionReady || condition == nebiusv1.ConditionReconciling
}
