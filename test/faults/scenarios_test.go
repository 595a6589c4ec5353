// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/health"
	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/slurm/keyset"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

// scenario is something that users, jobs and machines do.
type scenario struct {
	name string
	// nodeSet is the spec of NodeSet w that is there and at rest at the beginning, or a whole SlurmCluster; empty: there is nothing.
	nodeSet string
	// act is what happens. It waits between its steps where users would look.
	act func(w *world)
	// anyEnd is true if the end and the way to it depend on what comes first, so that neither is compared.
	anyEnd bool
	// sparse is how many times fewer writes of a long scenario are tried when not all are; zero counts as one.
	sparse int
	// leaves is what else is to be there in the end; nil for nothing special.
	leaves func(w *world)
	// writes is set if the program is the one that writes files into a jail; nil: it is the operator.
	writes *fileSystem
	// reboots is true if degraded nodes are rebooted: there is a rebooter on each Kubernetes node.
	reboots bool
	// replaces is true if machines are replaced as well: there is a cloud.
	replaces bool
	// storage is true if kubelets are asked how much ephemeral storage workers use.
	storage bool
	// limit is how many workers checks may take out of service; the zero value is one.
	limit health.DrainLimit
	// besides are additional faults, of this scenario alone.
	besides []fault
}

const threeWorkers = `replicas: 3, updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 1}}`

func scenarios() []scenario {
	return slices.Concat(growing(), shrinking(), changing(), breaking(), resting(), populating(), saving(), leaving(), writing(), checking())
}

func growing() []scenario {
	return []scenario{
		{name: "create", act: func(w *world) { w.cluster(threeWorkers) }},
		{name: "scale up", nodeSet: threeWorkers, act: func(w *world) { w.scale(5) }},
	}
}

func shrinking() []scenario {
	return []scenario{
		{name: "scale down with jobs", nodeSet: threeWorkers, act: func(w *world) {
			w.occupy(3*time.Minute, "w-0", "w-1", "w-2")
			w.scale(1)
			w.sleep(4 * time.Minute)
		}},
		{name: "scale down with suspended jobs", nodeSet: threeWorkers, act: func(w *world) {
			jobs := w.suspended(time.Minute, "w-0", "w-1", "w-2")
			w.scale(1)
			w.sleep(4 * time.Minute)
			for _, id := range jobs {
				w.slurm.Resume(id)
			}
			w.touch()
			w.sleep(4 * time.Minute)
		}},
		{name: "scale down and back", nodeSet: threeWorkers, act: func(w *world) {
			w.occupy(5*time.Minute, "w-0", "w-1", "w-2")
			w.scale(2)
			w.sleep(time.Minute)
			w.scale(3)
			w.sleep(5 * time.Minute)
		}},
		{name: "drain time-out", nodeSet: threeWorkers + `, drainTimeout: 2m`, act: func(w *world) {
			w.occupy(8*time.Minute, "w-0", "w-1", "w-2")
			w.scale(2)
			w.sleep(9 * time.Minute)
		}},
		{name: "retired again", nodeSet: threeWorkers + `, drainTimeout: 3m`, sparse: 2, act: func(w *world) {
			// Or which of them is retired would depend on whose mark of the cordon is written first.
			change(w, "w-2", func(p *corev1.Pod) { p.Annotations[slinkyv1beta1.AnnotationPodDeletionCost] = "-1" })
			w.occupy(20*time.Minute, "w-0", "w-1", "w-2")
			w.cordonNodes(true)
			w.sleep(10 * time.Second)
			w.scale(2)
			w.sleep(time.Minute)
			w.scale(3)
			w.sleep(5 * time.Minute)
			w.scale(2)
			w.sleep(4 * time.Minute)
			w.cordonNodes(false)
			w.sleep(12 * time.Minute)
		}},
		{name: "scale down of a dead worker", nodeSet: threeWorkers, act: func(w *world) {
			w.slurm.Lose("w-2")
			job := w.slurm.Submit(fake.Job{NodeList: []string{"w-2"}, CPUs: 1, Duration: 2 * time.Minute})
			w.sleep(10 * time.Second)
			w.scale(2)
			w.sleep(5 * time.Minute)
			w.slurm.Cancel(job)
		}},
		{name: "fail-over", nodeSet: threeWorkers, act: func(w *world) {
			w.scale(4)
			w.sleep(100 * time.Millisecond)
			w.crash()
			w.known("w-3") // or what Slurm is left with would depend on how far it came
			w.scale(2)
			w.sleep(100 * time.Millisecond)
			w.crash()
		}},
	}
}

func changing() []scenario {
	return []scenario{
		{name: "rolling update with jobs", nodeSet: threeWorkers, act: func(w *world) {
			w.occupy(3*time.Minute, "w-1")
			change(w, "w", func(n *slinkyv1beta1.NodeSet) { n.Spec.ExtraConf = "Weight=7" })
			w.sleep(4 * time.Minute)
		}},
		{name: "configuration change", nodeSet: threeWorkers, act: func(w *world) {
			change(w, "demo", func(c *slinkyv1beta1.Controller) { c.Spec.ExtraConf = "SchedulerTimeSlice=60\n" })
		}},
		{name: "key rotation", nodeSet: threeWorkers, act: func(w *world) { w.rotate() }},
	}
}

func breaking() []scenario {
	return []scenario{
		{name: "cordon storm", nodeSet: threeWorkers, act: func(w *world) {
			w.cordon("true")
			w.sleep(time.Minute)
			w.cordon("")
		}},
		{name: "evictions", nodeSet: threeWorkers, sparse: 3, act: evictions},
		{name: "reboot", nodeSet: threeWorkers, reboots: true, sparse: 3, leaves: (*world).expectRebooted, act: degraded},
		{name: "replacement", nodeSet: threeWorkers, reboots: true, replaces: true, anyEnd: true, sparse: 4, leaves: (*world).expectReplaced, act: machinesReplaced},
		{name: "machine lost", nodeSet: threeWorkers, reboots: true, replaces: true, anyEnd: true, sparse: 6, leaves: (*world).expectLostReplaced, act: machineLost},
		{name: "replacement announced", nodeSet: threeWorkers, act: replacementAnnounced},
		{name: "node lost", nodeSet: threeWorkers, act: func(w *world) { w.loseNode("w-1") }},
		{name: "record lost", nodeSet: threeWorkers, act: func(w *world) {
			if err := w.slurm.Delete("w-1"); err != nil {
				w.t.Error(err)
			}
			w.sleep(4 * time.Minute)
		}},
		{name: "configuration lost", nodeSet: threeWorkers, act: func(w *world) {
			for _, cm := range w.sim.Objects(corev1.SchemeGroupVersion.WithKind("ConfigMap")) {
				remove[corev1.ConfigMap](w, cm.GetName())
			}
		}},
	}
}

func leaving() []scenario {
	return []scenario{
		// A NodeSet waits for no record of its workers, so that they stay where Slurm does not answer at its end.
		{name: "delete", nodeSet: threeWorkers, anyEnd: true, leaves: (*world).expectNothing, act: func(w *world) {
			remove[slinkyv1beta1.NodeSet](w, "w")
			gone[slinkyv1beta1.NodeSet](w, "w")
			remove[slinkyv1beta1.RestApi](w, "demo")
			remove[slinkyv1beta1.Controller](w, "demo")
		}},
		{name: "delete all at once", nodeSet: threeWorkers, anyEnd: true, leaves: (*world).expectNothing, act: func(w *world) {
			remove[slinkyv1beta1.Controller](w, "demo")
			remove[slinkyv1beta1.RestApi](w, "demo")
			remove[slinkyv1beta1.NodeSet](w, "w")
		}},
		{name: "adopt", nodeSet: threeWorkers, act: func(w *world) {
			remove[slinkyv1beta1.NodeSet](w, "w", client.PropagationPolicy(metav1.DeletePropagationOrphan))
			gone[slinkyv1beta1.NodeSet](w, "w")
			w.sleep(5 * time.Second)
			create[slinkyv1beta1.NodeSet](w, nodeSet(threeWorkers))
		}},
	}
}

// occupy lets a job run on each of these nodes.
func (w *world) occupy(duration time.Duration, nodes ...string) {
	for _, name := range nodes {
		w.slurm.Submit(fake.Job{NodeList: []string{name}, CPUs: 1, Duration: duration})
	}
	w.sleep(10 * time.Second)
}

// suspended starts jobs and suspends them, and returns them.
func (w *world) suspended(duration time.Duration, nodes ...string) (jobs []int64) {
	for _, name := range nodes {
		id := w.slurm.Submit(fake.Job{NodeList: []string{name}, CPUs: 1, Duration: duration})
		w.slurm.Suspend(id)
		jobs = append(jobs, id)
	}
	w.sleep(10 * time.Second)
	return jobs
}

// expectNothing checks that no custom resource and no worker is left.
func (w *world) expectNothing() {
	for _, obj := range w.sim.All() {
		if isWorker(obj) && obj.GetKind() == "Pod" || obj.GroupVersionKind().Group == slinkyv1beta1.GroupVersion.Group {
			w.fail("nothing is left", "%s %s, finalizers %v", obj.GetKind(), obj.GetName(), obj.GetFinalizers())
		}
	}
}

func nodeSet(spec string) string {
	return fmt.Sprintf(`{metadata: {name: w}, spec: {controllerRef: {name: demo}, %s}}`, spec)
}

// cluster creates a cluster with workers.
func (w *world) cluster(spec string) {
	if strings.HasPrefix(spec, "{metadata:") {
		create[nebiusv1.SlurmCluster](w, spec)
		return
	}
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

// rotate changes every generated key, and the set of keys that consists of it.
func (w *world) rotate() {
	for _, s := range w.sim.Objects(corev1.SchemeGroupVersion.WithKind("Secret")) {
		if s.GetLabels()[kube.KeyLabel] == "" {
			continue
		}
		change(w, s.GetName(), func(s *corev1.Secret) {
			for name := range s.Data {
				if name != slinkyv1beta1.SlurmKeySetName {
					s.Data[name] = []byte(strings.Repeat("another key ", 100))
				}
			}
			if s.Data[slinkyv1beta1.SlurmKeySetName] == nil {
				return
			}
			set, err := keyset.New([]byte(strings.Repeat("another key ", 100)))
			if err != nil {
				w.t.Fatal(err)
			}
			s.Data[slinkyv1beta1.SlurmKeySetName] = set
		})
	}
}

// loseNode lets the Kubernetes node of a worker fall silent: the worker is not ready, then it is to be deleted, which
// does not happen until the node is back.
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
