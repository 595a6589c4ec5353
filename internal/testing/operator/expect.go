// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
)

// ExpectWorkers waits until exactly these workers exist.
func (o *Operator) ExpectWorkers(want ...string) {
	o.t.Helper()
	apiserver.Eventually(o.t, func() error {
		var got []string
		for _, p := range o.Workers() {
			got = append(got, p.Name)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("workers (-want +got):\n%s", diff)
		}
		return nil
	})
}

// ExpectStatus waits until the status of the NodeSet of StartWorkers is as ok wants it.
func (o *Operator) ExpectStatus(ok func(slinkyv1beta1.NodeSetStatus) bool) {
	o.t.Helper()
	apiserver.Eventually(o.t, func() error {
		if s := Get[slinkyv1beta1.NodeSet](o, "w").Status; !ok(s) {
			return fmt.Errorf("the status is %+v", s)
		}
		return nil
	})
}

// ExpectWaiting waits until a retired worker shows that it waits for something, and the NodeSet shows it too.
func (o *Operator) ExpectWaiting(pod, message string) {
	o.t.Helper()
	apiserver.Eventually(o.t, func() error {
		p, err := Find[corev1.Pod](o, pod)
		if err != nil {
			return err
		}
		for _, c := range p.Status.Conditions {
			if c.Type != "coxswain.dev/Retiring" {
				continue
			}
			shown, _, _ := strings.Cut(c.Message, " (")
			// Which job it is, is known a moment later.
			if shown != message && (message != "waiting for jobs to end" || !strings.HasPrefix(shown, "waiting for job ")) {
				return fmt.Errorf("%s says %q, want %q", pod, c.Message, message)
			}
			message := c.Message
			for _, c := range Get[slinkyv1beta1.NodeSet](o, "w").Status.Conditions {
				if c.Type == "Ready" && c.Status == metav1.ConditionFalse && strings.Contains(c.Message, pod+" retires: "+message) {
					return nil
				}
			}
			return fmt.Errorf("the NodeSet does not say why %s waits: %+v", pod, Get[slinkyv1beta1.NodeSet](o, "w").Status.Conditions)
		}
		return fmt.Errorf("%s has no condition Retiring: %+v", pod, p.Status.Conditions)
	})
}

// ExpectNode waits until slurmctld has this on a node: its state and its reason.
func (o *Operator) ExpectNode(name, want string) {
	o.t.Helper()
	apiserver.Eventually(o.t, func() error {
		if got := o.NodeState(name); got != want {
			return fmt.Errorf("%s is %q, want %q", name, got, want)
		}
		return nil
	})
}

// ExpectLeft lets kubelets end the pods that are being deleted, until exactly these workers are left.
func (o *Operator) ExpectLeft(want ...string) {
	o.t.Helper()
	apiserver.Eventually(o.t, func() error {
		var left []string
		for _, p := range o.Workers() {
			if p.DeletionTimestamp != nil {
				o.Kill(p.Name)
				continue
			}
			left = append(left, p.Name)
		}
		if !slices.Equal(left, want) {
			return fmt.Errorf("%v are left, want %v", left, want)
		}
		return nil
	})
}

// ExpectReplaced waits until a pod is another one than before.
func (o *Operator) ExpectReplaced(name string, before types.UID) {
	o.t.Helper()
	apiserver.Eventually(o.t, func() error {
		p, err := Find[corev1.Pod](o, name)
		if err == nil && p.UID == before {
			err = fmt.Errorf("%s is not made anew", name)
		}
		return err
	})
}

// ExpectNothingWritten lets something happen that is no business of the operator's.
func (o *Operator) ExpectNothingWritten(happens func()) {
	o.t.Helper()
	o.Settle()
	o.Writes.Reset()
	o.Slurm.ResetCounters()
	happens()
	o.Settle()
	o.Writes.ExpectNone(o.t)
	if writes := o.Slurm.Writes(); len(writes) > 0 {
		o.t.Errorf("Slurm is written to: %+v", writes)
	}
}

// ExpectNoErrors fails the test when the operator has logged an error.
func (o *Operator) ExpectNoErrors() {
	o.t.Helper()
	for _, line := range o.Errors() {
		// Kubernetes' library logs this for an event that comes too late for its namespace.
		if !strings.Contains(line, "Server rejected event") {
			o.t.Errorf("the operator complained: %s", line)
		}
	}
}

// ExpectExists waits until there is an object.
func ExpectExists[T any, P interface {
	*T
	client.Object
}](o *Operator, name string) {
	o.t.Helper()
	apiserver.Eventually(o.t, func() error {
		_, err := Find[T, P](o, name)
		return err
	})
}

// ExpectGone waits until there is no such object.
func ExpectGone[T any, P interface {
	*T
	client.Object
}](o *Operator, name string) {
	o.t.Helper()
	apiserver.Eventually(o.t, func() error {
		if Exists[T, P](o, name) {
			return fmt.Errorf("there is still a %T %s", *new(T), name)
		}
		return nil
	})
}
