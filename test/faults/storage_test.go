// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/health"
	"github.com/coxswain-hpc/coxswain/internal/health/podstorage"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

// fourLimitedWorkers are workers whose pods have a limit of ephemeral storage: storageLimit.
const fourLimitedWorkers = `replicas: 4, updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 1}}, slurmd: {resources: {limits: {ephemeral-storage: "1000"}}}`

const storageLimit = 1000 // bytes

// storage is how much ephemeral storage worker pods use, as their kubelets report. With a nil storage the kubelets are not asked.
type storage struct {
	mu sync.Mutex
	// used is in percent of the limit, by the name of the pod.
	used map[string]int64
	// silent is true if no kubelet answers.
	silent bool
}

// options returns the options of the operator.
func (s *storage) options() *podstorage.Options {
	if s == nil {
		return nil
	}
	return &podstorage.Options{
		Thresholds: health.StorageThresholds{Drain: health.DefaultStorageThreshold, Resume: health.DefaultStorageResumeThreshold},
		Kubelet:    podstorage.KubeletOptions{Port: podstorage.DefaultKubeletPort, RequestTimeout: podstorage.DefaultRequestTimeout},
	}
}

func (s *storage) use(percent int64, pods ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range pods {
		s.used[name] = percent
	}
}

func (s *storage) silence(silent bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.silent = silent
}

// stormOfDisks is that all workers use nearly all of their ephemeral storage at once, while a job runs. The disruption budget lets two of them go. When
// these are back the others follow, and in the end all are back.
func stormOfDisks(w *world) {
	all := []string{"w-0", "w-1", "w-2", "w-3"}
	job := w.slurm.Submit(fake.Job{NodeList: []string{"w-1"}, CPUs: 1, Duration: 6 * time.Minute})
	w.storage.use(95, all...)
	w.sleep(4 * time.Minute)
	w.expectOut("w-0", "w-1")
	w.expectPaused(true)
	w.storage.use(10, "w-0", "w-1")
	w.sleep(6 * time.Minute)
	w.expectOut("w-2", "w-3")
	w.storage.use(10, all...)
	w.sleep(4 * time.Minute)
	w.expectPaused(false)
	w.expectUsersJob(job)
}

// expectPaused checks what the NodeSet shows about the disruption budget, unless a fault may have changed that.
func (w *world) expectPaused(want bool) {
	n, _ := get[slinkyv1beta1.NodeSet](w, "w")
	if w.undisturbed() && meta.IsStatusConditionTrue(n.Status.Conditions, slinkyv1beta1.ConditionDrainsByChecksPaused) != want {
		w.fail("who waits for the disruption budget is told", "%+v, want %t", n.Status.Conditions, want)
	}
}

// silentKubelets is that no kubelet answers for a while.
func silentKubelets() []fault {
	return []fault{{name: "kubelets are silent", lasts: 2 * time.Minute, otherEnd: true, moreActions: true, strike: func(w *world, _ call) verdict {
		w.storage.silence(true)
		w.after(2*time.Minute, func() { w.storage.silence(false) })
		return verdict{}
	}}}
}

// kubelets answers for the kubelets, and passes on what is for the API server.
type kubelets struct {
	world   *world
	process *process
	next    http.RoundTripper
}

// RoundTrip answers as a kubelet at /stats/summary. The name of a Kubernetes node is its address.
func (k *kubelets) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Path != "/stats/summary" {
		return k.next.RoundTrip(r)
	}
	s := k.world.storage
	s.mu.Lock()
	defer s.mu.Unlock()
	if k.process.ctx.Err() != nil || s.silent {
		return nil, errRefused()
	}
	pods := []any{}
	for _, pod := range k.world.sim.Objects(podKind) {
		host, _, _ := unstructured.NestedString(pod.Object, "spec", "nodeName")
		if isWorker(pod) && host == r.URL.Hostname() {
			pods = append(pods, map[string]any{
				"podRef":            map[string]any{"name": pod.GetName(), "namespace": pod.GetNamespace(), "uid": pod.GetUID()},
				"ephemeral-storage": map[string]any{"usedBytes": s.used[pod.GetName()] * storageLimit / 100},
			})
		}
	}
	body, err := json.Marshal(map[string]any{"pods": pods})
	return answer(r, http.StatusOK, string(body)), err
}
