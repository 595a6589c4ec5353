// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/slurm/fake"
)

// kubelets play the kubelets and slurmds of all workers, and note what pods say when.
type kubelets struct {
	bench *bench
	work  chan string

	mu   sync.Mutex
	pods map[string]*corev1.Pod
	seen chan struct{} // closed and replaced with every event
}

// readyStatus is what a kubelet says of a pod that runs.
const readyStatus = `{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True","lastTransitionTime":"%s"}]}}`

func newKubelets(b *bench) *kubelets {
	k := &kubelets{bench: b, work: make(chan string, 10000), pods: map[string]*corev1.Pod{}, seen: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	stream, err := b.user.Watch(ctx, &corev1.PodList{}, client.InNamespace(b.server.Namespace))
	if err != nil {
		b.t.Fatalf("watching pods: %v", err)
	}
	var running sync.WaitGroup
	running.Go(func() { k.watch(stream) })
	for range 16 {
		running.Go(func() {
			for name := range k.work {
				k.run(ctx, name)
			}
		})
	}
	b.t.Cleanup(func() {
		cancel()
		stream.Stop()
		running.Wait()
	})
	return k
}

func (k *kubelets) watch(stream watch.Interface) {
	defer close(k.work)
	for e := range stream.ResultChan() {
		pod, ok := e.Object.(*corev1.Pod)
		if !ok {
			continue
		}
		k.mu.Lock()
		if e.Type == watch.Deleted {
			delete(k.pods, pod.Name)
		} else {
			k.pods[pod.Name] = pod
		}
		close(k.seen)
		k.seen = make(chan struct{})
		k.mu.Unlock()
		if e.Type == watch.Added && pod.Labels[slinkyv1beta1.LabelCluster] != "" {
			k.work <- pod.Name
		}
	}
}

func (k *kubelets) run(ctx context.Context, name string) {
	patch := fmt.Appendf(nil, readyStatus, time.Now().UTC().Format(time.RFC3339))
	pod := &corev1.Pod{}
	pod.Namespace, pod.Name = k.bench.server.Namespace, name
	if err := k.bench.user.Status().Patch(ctx, pod, client.RawPatch(types.StrategicMergePatchType, patch)); err != nil {
		return // it is gone, or the test is over
	}
	k.bench.slurm.Register(fake.Node{Name: name, CPUs: 64})
}

// wait waits until the pods are as check wants them, and says when that was seen.
func (k *kubelets) wait(t *testing.T, what string, limit time.Duration, check func(map[string]*corev1.Pod) bool) time.Time {
	t.Helper()
	timeout := time.After(limit)
	for {
		k.mu.Lock()
		ok, seen := check(k.pods), k.seen
		k.mu.Unlock()
		if ok {
			return time.Now()
		}
		select {
		case <-seen:
		case <-timeout:
			t.Fatalf("%s takes more than %s", what, limit)
		}
	}
}

func has(pod *corev1.Pod, kind string) bool {
	if pod == nil {
		return false
	}
	for _, c := range pod.Status.Conditions {
		if string(c.Type) == kind && c.Status == corev1.ConditionTrue {
			return true
		}
	}
	return false
}
