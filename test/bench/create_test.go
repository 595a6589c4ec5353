// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

// create makes the workers.
func (b *bench) create() {
	var began, all, ready, idle time.Time
	cost := b.cost(func() {
		before := b.podsThatExist()
		began = time.Now()
		add[slinkyv1beta1.NodeSet](b, fmt.Sprintf(`{metadata: {name: w}, spec: {controllerRef: {name: demo}, replicas: %d}}`, b.size))
		all = b.awaitPods(before + b.size)
		ready = b.awaitReady("w-")
		idle = b.kubelets.wait(b.t, "registering the workers", func(pods map[string]*corev1.Pod) bool { return workers(pods, serves) == b.size })
	})
	b.created, b.started = all.Sub(began), ready.Sub(began)
	b.tell("create", "all pods exist", b.created.Seconds(), "s")
	b.tell("create", "all pods are ready", b.started.Seconds(), "s")
	b.tell("create", "all pods say that their Slurm nodes are idle", idle.Sub(began).Seconds(), "s")
	b.tell("create", "last slurmd registered to all pods say so", idle.Sub(b.kubelets.registered()).Seconds(), "s")
	// A pod is created, and gets what Slurm reports about it. The rest is the NodeSet's own and its status on the way.
	b.holdAPI("create", cost, 2)
	// The comment of each node names its pod, so that no two are the same.
	b.hold("create", "Slurm writes", cost.slurm.posts(), b.size+5)
	b.tellSlurmReads("create", cost.slurm.gets())
}

// compare makes as many pods like the workers with a StatefulSet.
func (b *bench) compare() {
	if !*compare {
		return
	}
	b.kubelets.mu.Lock()
	like := b.kubelets.pods["w-0"].DeepCopy()
	b.kubelets.mu.Unlock()
	like.Spec.NodeName, like.Spec.Hostname, like.Spec.Subdomain = "", "", ""
	labels := map[string]string{"app": "bare"}
	for i := range like.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution { // one on each Kubernetes node, too
		like.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[i].LabelSelector.MatchExpressions = nil
		like.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[i].LabelSelector.MatchLabels = labels
	}
	before := b.podsThatExist()
	var began, all, ready time.Time
	cost := b.cost(func() {
		began = time.Now()
		b.stateful("bare", labels, like.Spec)
		all = b.awaitPods(before + b.size)
		ready = b.awaitReady("bare-")
	})
	b.tell("compare", "all pods of a bare StatefulSet exist", all.Sub(began).Seconds(), "s")
	b.tell("compare", "time until all workers exist, in such times", float64(b.created)/float64(all.Sub(began)), "")
	b.tell("compare", "all pods of a bare StatefulSet are ready", ready.Sub(began).Seconds(), "s")
	b.tell("compare", "time until all workers are ready, in such times", float64(b.started)/float64(ready.Sub(began)), "")
	b.tell("compare", "CPU of the operator, per pod of the StatefulSet", 1000*cost.cpu.Seconds()/float64(b.size), "ms")
	b.tell("compare", "CPU of the API server and etcd, per pod of the StatefulSet", 1000*cost.server.Seconds()/float64(b.size), "ms")
}

// stateful creates a StatefulSet of as many pods as there are workers.
func (b *bench) stateful(name string, labels map[string]string, spec corev1.PodSpec) {
	b.t.Helper()
	replicas := int32(b.size)
	err := b.user.Create(b.t.Context(), &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.server.Namespace, Name: name},
		Spec: appsv1.StatefulSetSpec{
			Replicas: &replicas, PodManagementPolicy: appsv1.ParallelPodManagement, ServiceName: name,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec},
		},
	})
	if err != nil {
		b.t.Fatalf("creating StatefulSet %s: %v", name, err)
	}
}

// awaitReady waits until as many pods of a name that begins so are ready as there are workers, and returns when they were.
func (b *bench) awaitReady(prefix string) time.Time {
	b.t.Helper()
	return b.kubelets.wait(b.t, "running the pods "+prefix+"*", func(pods map[string]*corev1.Pod) bool {
		n := 0
		for name, p := range pods {
			if strings.HasPrefix(name, prefix) && has(p, "Ready") {
				n++
			}
		}
		return n == b.size
	})
}

// warm has as many pods come and go as there will be workers. The API server keeps what has changed lately in a buffer for its
// watches, which begins with room for a hundred events and grows with them. Until then a watch that is behind by ten is ended, so that
// in a new API server the first thousand pods ended all watches of pods thirty times.
func (b *bench) warm() {
	if !*compare {
		return
	}
	labels := map[string]string{"app": "bare"}
	b.stateful("warm", labels, corev1.PodSpec{Containers: []corev1.Container{{Name: "warm", Image: "example.com/warm"}}})
	b.awaitReady("warm-")
	// There is no garbage collector for what belonged to it.
	for _, obj := range []client.Object{&appsv1.StatefulSet{}, &corev1.Pod{}} {
		if err := b.user.DeleteAllOf(b.t.Context(), obj, client.InNamespace(b.server.Namespace)); err != nil {
			b.t.Fatalf("deleting what was made first: %v", err)
		}
	}
	b.kubelets.wait(b.t, "deleting what was made first", func(pods map[string]*corev1.Pod) bool { return len(pods) == 0 })
}

// podsThatExist asks the API server how many pods there are. Watches show it a second or two later on a busy machine, those
// of workers later than others, because the operator watches them as well.
func (b *bench) podsThatExist() int {
	b.t.Helper()
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	if err := b.user.List(b.t.Context(), list, client.InNamespace(b.server.Namespace), client.Limit(1)); err != nil {
		b.t.Fatalf("counting pods: %v", err)
	}
	n := len(list.Items)
	if rest := list.GetRemainingItemCount(); rest != nil {
		n += int(*rest)
	}
	return n
}

// awaitPods waits until there are so many pods, and returns when there were.
func (b *bench) awaitPods(n int) time.Time {
	b.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.Now().Add(b.longest())
	for b.podsThatExist() < n {
		if time.Now().After(deadline) {
			b.t.Fatalf("there are %d pods, not %d", b.podsThatExist(), n)
		}
		<-tick.C
	}
	return time.Now()
}

// components counts what the operator writes for a cluster without workers.
func TestComponents(t *testing.T) {
	b := newBench(t, 0)
	secret := func(name, key, value string) {
		add[corev1.Secret](b, fmt.Sprintf(`{metadata: {name: %s}, stringData: {%s: %s}}`, name, key, value))
	}
	secret("keys", "slurm.key", "the-slurm-key")
	secret("jwt", "jwt_hs256.key", "the-jwt-key-of-at-least-sixteen-bytes")
	b.settle()
	const refs = `slurmKeyRef: {name: keys, key: slurm.key}, jwtHs256KeyRef: {name: jwt, key: jwt_hs256.key}`
	for _, step := range []struct {
		name  string
		limit int
		do    func()
	}{
		{"create Controller, Accounting, RestApi and LoginSet", 45, func() {
			add[slinkyv1beta1.Accounting](b, `{metadata: {name: demo}, spec: {`+refs+`, embeddedDatabase: {}}}`)
			add[slinkyv1beta1.Controller](b, `{metadata: {name: demo}, spec: {`+refs+`, accountingRef: {name: demo}}}`)
			add[slinkyv1beta1.RestApi](b, `{metadata: {name: demo}, spec: {controllerRef: {name: demo}}}`)
			add[slinkyv1beta1.LoginSet](b, `{metadata: {name: demo}, spec: {controllerRef: {name: demo}, users: [{name: alice, uid: 1000}]}}`)
		}},
		{"edit the configuration", 12, func() {
			b.change(&slinkyv1beta1.Controller{}, "demo", `{"spec":{"extraConf":"SlurmctldTimeout=77"}}`)
		}},
		{"another image of slurmctld", 12, func() {
			b.change(&slinkyv1beta1.Controller{}, "demo", `{"spec":{"slurmctld":{"image":"example.com/slurmctld:2"}}}`)
		}},
		{"another JWT key", 16, func() {
			b.change(&corev1.Secret{}, "jwt", `{"stringData":{"jwt_hs256.key":"another-key-of-at-least-sixteen-bytes"}}`)
		}},
		{"a second login pod", 6, func() { b.change(&slinkyv1beta1.LoginSet{}, "demo", `{"spec":{"replicas":2}}`) }},
		{"a label of the user's on the Controller, which its objects get", 4, func() {
			b.change(&slinkyv1beta1.Controller{}, "demo", `{"metadata":{"labels":{"team":"blue"}}}`)
		}},
		{"restart the operator", 0, func() {
			b.process.stop()
			b.process = b.start()
			b.led()
		}},
	} {
		t.Run(step.name, func(t *testing.T) {
			b.t = t
			cost := b.cost(func() {
				step.do()
				b.ready()
			})
			b.hold(step.name, "API writes", cost.api.writes(), step.limit)
		})
		b.t = t
	}
}
