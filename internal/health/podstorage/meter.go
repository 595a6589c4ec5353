// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podstorage asks kubelets once a minute how much ephemeral storage worker pods use, and remembers which of them use nearly all of
// it. See docs/contributors/predecessors/soperator-health.md#ephemeral-storage. Nothing is written here. The controller of worker pods
// drains and undrains by what Meter says, and is woken when that changes. A kubelet that does not answer changes nothing. What is
// remembered is lost with the process; the reason in Slurm then shows which nodes were drained.
package podstorage

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/coxswain-hpc/coxswain/internal/health"
	"github.com/coxswain-hpc/coxswain/internal/health/budget"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
)

// Options are how ephemeral storage is measured.
type Options struct {
	Thresholds health.StorageThresholds
	Kubelet    KubeletOptions
	// Interval is the time from one measurement to the next; 0 is a minute.
	Interval time.Duration
}

// Validate returns what is wrong with the options, by their flags.
func (o Options) Validate() error {
	if err := o.Thresholds.Validate(); err != nil {
		return err
	}
	return o.Kubelet.Validate()
}

const (
	// defaultInterval is the time from one measurement to the next, unless the options set another one.
	defaultInterval = time.Minute
	// jitter is by which part of the interval the time is longer at most, so that several operators do not ask at the same time.
	jitter = 0.1
	// spread is the part of the interval over which the requests of one measurement begin.
	spread = 4
	// maxRequests is how many kubelets are asked at once.
	maxRequests = 32
)

// check is the name under which the disruption budget is asked.
const check = "ephemeral storage"

// Meter finds the workers whose ephemeral storage is nearly used up. A nil Meter finds none.
type Meter struct {
	options  Options
	kubelets *kubelets
	pods     client.Reader
	caches   *slurmcache.Registry
	budgets  *budget.Budgets
	clock    clock.Clock
	// silent are the Kubernetes nodes whose kubelets did not answer last, and asked the NodeSets that the disruption budget was asked for. Only Start
	// uses them.
	silent map[string]bool
	asked  map[types.NamespacedName]bool
	// last is what was known of each pod, also while its kubelet is silent. Only Start uses it.
	last map[types.UID]health.Storage

	mu    sync.Mutex
	facts map[types.UID]health.Storage
	wake  func(types.NamespacedName)
}

// New makes a Meter. It reads worker pods from the cache, and uses the credentials for the API server to ask kubelets.
func New(config *rest.Config, o Options, pods client.Reader, tokens client.SubResourceClientConstructor, caches *slurmcache.Registry, budgets *budget.Budgets, c clock.Clock) (*Meter, error) {
	kubelets, err := newKubelets(config, o.Kubelet, tokens, c)
	if err != nil {
		return nil, err
	}
	if o.Interval == 0 {
		o.Interval = defaultInterval
	}
	budgets.Await(check)
	return &Meter{
		options: o, kubelets: kubelets, pods: pods, caches: caches, budgets: budgets, clock: c,
		silent: map[string]bool{}, asked: map[types.NamespacedName]bool{}, last: map[types.UID]health.Storage{},
	}, nil
}

// Of returns what is known of the ephemeral storage of a pod. A pod without a limit always has enough.
func (m *Meter) Of(pod *corev1.Pod) health.Storage {
	if m == nil {
		return health.Storage{}
	}
	if health.StorageLimit(&pod.Spec) == 0 {
		return m.options.Thresholds.After(health.Storage{}, health.StorageUse{Known: true})
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if fact, known := m.facts[pod.UID]; known {
		return fact
	}
	return health.Storage{Resume: m.options.Thresholds.Resume}
}

// Notify has wake called with each pod whose facts have changed. It must not block.
func (m *Meter) Notify(wake func(types.NamespacedName)) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wake = wake
}

// Start measures until the context ends.
func (m *Meter) Start(ctx context.Context) error {
	ctx = log.IntoContext(ctx, log.FromContext(ctx).WithName("podstorage"))
	for {
		timer := m.clock.NewTimer(wait.Jitter(m.options.Interval, jitter))
		if err := m.measure(ctx); err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "Could not measure the ephemeral storage of workers")
		}
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C():
		}
	}
}

// measure asks the kubelets of all workers with a limit once, then the disruption budget, and publishes what is known now.
func (m *Meter) measure(ctx context.Context) error {
	var list corev1.PodList
	if err := m.pods.List(ctx, &list, workers(), client.UnsafeDisableDeepCopy); err != nil { // they are only read
		return fmt.Errorf("listing worker pods: %w", err)
	}
	used := m.askAll(ctx, list.Items)
	if ctx.Err() != nil {
		return nil //nolint:nilerr // the operator ends
	}
	facts, last := map[types.UID]health.Storage{}, map[types.UID]health.Storage{}
	for i := range list.Items {
		p := &list.Items[i]
		limit := health.StorageLimit(&p.Spec)
		if limit == 0 {
			continue
		}
		bytes, known := used[p.UID]
		is := m.options.Thresholds.After(m.last[p.UID], health.StorageUse{Used: bytes, Limit: limit, Known: known})
		last[p.UID], facts[p.UID] = is, is
		if !known {
			facts[p.UID] = health.Storage{Resume: is.Resume}
		}
	}
	m.applyBudgets(list.Items, facts, last)
	m.last = last
	m.publish(list.Items, facts)
	return nil
}

// publish stores the facts, and wakes the pods whose facts have changed.
func (m *Meter) publish(pods []corev1.Pod, facts map[types.UID]health.Storage) {
	m.mu.Lock()
	before, wake := m.facts, m.wake
	m.facts = facts
	m.mu.Unlock()
	if wake == nil {
		return
	}
	for i := range pods {
		p := &pods[i]
		was, known := before[p.UID]
		if !known {
			was = health.Storage{Resume: m.options.Thresholds.Resume}
		}
		if is, measured := facts[p.UID]; measured && is != was {
			wake(client.ObjectKeyFromObject(p))
		}
	}
}
