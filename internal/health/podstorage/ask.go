// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package podstorage

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/coxswain-hpc/coxswain/internal/health"
)

// hostsOf returns the addresses of the Kubernetes nodes on which workers with a limit run, by their names.
func hostsOf(pods []corev1.Pod) map[string]string {
	out := map[string]string{}
	for i := range pods {
		p := &pods[i]
		if p.Spec.NodeName != "" && p.Status.HostIP != "" && p.Status.Phase == corev1.PodRunning && health.StorageLimit(&p.Spec) > 0 {
			out[p.Spec.NodeName] = p.Status.HostIP
		}
	}
	return out
}

// askAll asks the kubelet of each Kubernetes node with such workers once, and returns how many bytes pods use. The requests begin over a
// part of the interval, so that a thousand answers are not read at once.
func (m *Meter) askAll(ctx context.Context, pods []corev1.Pod) map[types.UID]uint64 {
	hosts := hostsOf(pods)
	var mu sync.Mutex
	all, failed := map[types.UID]uint64{}, map[string]error{}
	permits := make(chan struct{}, maxRequests)
	var running sync.WaitGroup
	for i, name := range slices.Sorted(maps.Keys(hosts)) {
		if i > 0 && !m.pause(ctx, m.options.Interval/time.Duration(spread*len(hosts))) {
			break
		}
		permits <- struct{}{}
		running.Go(func() {
			defer func() { <-permits }()
			used, err := m.kubelets.use(ctx, hosts[name])
			mu.Lock()
			defer mu.Unlock()
			maps.Copy(all, used)
			if err != nil {
				failed[name] = err
			}
		})
	}
	running.Wait()
	if ctx.Err() == nil {
		m.tell(ctx, hosts, failed)
	}
	return all
}

// pause waits, and reports whether the context is still alive.
func (m *Meter) pause(ctx context.Context, d time.Duration) bool {
	timer := m.clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C():
		return true
	}
}

// maxNamed is how many Kubernetes nodes a line of the log names.
const maxNamed = 10

// tell writes one line about kubelets that answered before and do not now, and one about those that answer again.
func (m *Meter) tell(ctx context.Context, hosts map[string]string, failed map[string]error) {
	var silent, back []string
	for name := range hosts {
		switch _, fails := failed[name]; {
		case fails && !m.silent[name]:
			silent = append(silent, name)
		case !fails && m.silent[name]:
			back = append(back, name)
		}
	}
	m.silent = map[string]bool{}
	for name := range failed {
		m.silent[name] = true
	}
	slices.Sort(silent)
	slices.Sort(back)
	if len(silent) > 0 {
		log.FromContext(ctx).Info("Kubelets did not say how much ephemeral storage workers use", "nodes", named(silent), "count", len(silent),
			"why", failed[silent[0]].Error())
	}
	if len(back) > 0 {
		log.FromContext(ctx).Info("Kubelets answered again", "nodes", named(back), "count", len(back))
	}
}

// named returns the first of the names.
func named(all []string) string {
	if len(all) > maxNamed {
		return strings.Join(all[:maxNamed], ",") + ",…"
	}
	return strings.Join(all, ",")
}
