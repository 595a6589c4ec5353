// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/slurm/fake"
)

// scenario is something that users, jobs and machines do.
type scenario struct {
	name string
	// nodeSet is the spec of NodeSet w that is there and at rest at the beginning; empty: there is nothing.
	nodeSet string
	// act is what happens. It waits between its steps where users would look.
	act func(w *world)
}

const threeWorkers = `replicas: 3, updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 1}}`

func scenarios() []scenario {
	return []scenario{
		{"create", "", func(w *world) { w.cluster(threeWorkers) }},
		{"scale up", threeWorkers, func(w *world) { w.scale(5) }},
		{"scale down with jobs", threeWorkers, func(w *world) {
			for i := range 3 {
				w.slurm.Submit(fake.Job{NodeList: []string{fmt.Sprintf("w-%d", i)}, CPUs: 1, Duration: 3 * time.Minute})
			}
			w.sleep(10 * time.Second)
			w.scale(1)
			w.sleep(4 * time.Minute)
		}},
		{"scale down and back", threeWorkers, func(w *world) {
			for i := range 3 {
				w.slurm.Submit(fake.Job{NodeList: []string{fmt.Sprintf("w-%d", i)}, CPUs: 1, Duration: 5 * time.Minute})
			}
			w.sleep(10 * time.Second)
			w.scale(2)
			w.sleep(time.Minute)
			w.scale(3)
			w.sleep(5 * time.Minute)
		}},
		{"rolling update with jobs", threeWorkers, func(w *world) {
			w.slurm.Submit(fake.Job{NodeList: []string{"w-1"}, CPUs: 1, Duration: 3 * time.Minute})
			w.sleep(10 * time.Second)
			change(w, "w", func(n *slinkyv1beta1.NodeSet) { n.Spec.ExtraConf = "Weight=7" })
			w.sleep(4 * time.Minute)
		}},
		{"configuration change", threeWorkers, func(w *world) {
			change(w, "demo", func(c *slinkyv1beta1.Controller) { c.Spec.ExtraConf = "SchedulerTimeSlice=60\n" })
		}},
		{"key rotation", threeWorkers, func(w *world) { w.rotate() }},
		{"cordon storm", threeWorkers, func(w *world) {
			w.cordon("true")
			w.sleep(time.Minute)
			w.cordon("")
		}},
		{"node lost", threeWorkers, func(w *world) { w.loseNode("w-1") }},
		{"fail-over", threeWorkers, func(w *world) {
			w.scale(4)
			w.sleep(100 * time.Millisecond)
			w.crash()
			w.sleep(10 * time.Second)
			w.scale(2)
		}},
		{"delete", threeWorkers, func(w *world) {
			remove[slinkyv1beta1.NodeSet](w, "w")
			w.sleep(10 * time.Second)
			remove[slinkyv1beta1.RestApi](w, "demo")
			remove[slinkyv1beta1.Controller](w, "demo")
		}},
		{"adopt", threeWorkers, func(w *world) {
			remove[slinkyv1beta1.NodeSet](w, "w", client.PropagationPolicy(metav1.DeletePropagationOrphan))
			w.sleep(5 * time.Second)
			create[slinkyv1beta1.NodeSet](w, nodeSet(threeWorkers))
		}},
	}
}

func nodeSet(spec string) string {
	return fmt.Sprintf(`{metadata: {name: w}, spec: {controllerRef: {name: demo}, %s}}`, spec)
}

// cluster creates a cluster with workers.
func (w *world) cluster(spec string) {
	create[slinkyv1beta1.Controller](w, `{metadata: {name: demo}, spec: {}}`)
	create[slinkyv1beta1.RestApi](w, `{metadata: {name: demo}, spec: {controllerRef: {name: demo}}}`)
	create[slinkyv1beta1.NodeSet](w, nodeSet(spec))
}

func (w *world) scale(replicas int32) {
	change(w, "w", func(n *slinkyv1beta1.NodeSet) { n.Spec.Replicas = &replicas })
}

// cordon puts a mark on all workers, or takes it off.
func (w *world) cordon(value string) {
	for _, p := range w.sim.Objects(podKind) {
		if !isWorker(p) {
			continue
		}
		change(w, p.GetName(), func(p *corev1.Pod) {
			if value == "" {
				delete(p.Annotations, slinkyv1beta1.AnnotationPodCordon)
				return
			}
			if p.Annotations == nil {
				p.Annotations = map[string]string{}
			}
			p.Annotations[slinkyv1beta1.AnnotationPodCordon] = value
		})
	}
}

// rotate changes every generated key.
func (w *world) rotate() {
	for _, s := range w.sim.Objects(corev1.SchemeGroupVersion.WithKind("Secret")) {
		if s.GetLabels()[kube.KeyLabel] == "" {
			continue
		}
		change(w, s.GetName(), func(s *corev1.Secret) {
			for key := range s.Data {
				s.Data[key] = []byte(strings.Repeat("another key ", 1+len(s.Data[key])/12)[:len(s.Data[key])])
			}
		})
	}
}

// loseNode lets the Kubernetes node of a worker fall silent: the worker is not ready, then it is to be deleted, which
// nobody does until the node is back.
func (w *world) loseNode(worker string) {
	lose := func(lost bool) {
		w.mu.Lock()
		w.lostNodes["node-"+worker], w.moved = lost, true
		w.mu.Unlock()
		w.touch()
	}
	lose(true)
	w.slurm.Lose(worker)
	w.sleep(40 * time.Second)
	if p := w.pod(worker); p != nil {
		w.setReady(p, "Running", "False")
	}
	w.sleep(5 * time.Minute)
	remove[corev1.Pod](w, worker)
	w.sleep(time.Minute)
	lose(false)
}
