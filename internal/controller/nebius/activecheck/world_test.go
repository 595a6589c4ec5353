// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package activecheck

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	"github.com/coxswain-hpc/coxswain/internal/controller/nebius/activecheck/activecheckplan"
	"github.com/coxswain-hpc/coxswain/internal/health"
	"github.com/coxswain-hpc/coxswain/internal/health/budget"
	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"
	"github.com/coxswain-hpc/coxswain/internal/reconcile/reference"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
	"github.com/coxswain-hpc/coxswain/internal/slurm/token"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
	"github.com/coxswain-hpc/coxswain/internal/testing/manifest"
)

// world is a SlurmCluster in synthetic time with workers w-0 and w-1 of NodeSet w, of which checks may drain one, and ActiveCheck gpu.
type world struct {
	t      *testing.T
	slurm  *fake.Slurm
	client client.Client
	events *events.FakeRecorder
	r      *reconciler
	cache  *slurmcache.Cache
}

// live is a cache that has what the server has.
type live struct {
	cache.Cache
	reader client.Reader
}

func (l live) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return l.reader.Get(ctx, key, obj, opts...)
}

// gpu returns the key of the check, and set the key of its workers.
func gpu() types.NamespacedName { return types.NamespacedName{Namespace: "slurm", Name: "gpu"} }
func set() types.NamespacedName { return types.NamespacedName{Namespace: "slurm", Name: "w"} }

// aCheck returns the check that a user made with this UID, and its run after creation.
func aCheck(t *testing.T, uid string) (*nebiusv1alpha1.ActiveCheck, *batchv1.Job) {
	t.Helper()
	check := manifest.Parse[nebiusv1alpha1.ActiveCheck](t, `{metadata: {name: gpu, namespace: slurm, uid: `+uid+`}, spec: {name: gpu, slurmClusterRefName: demo,
		checkType: slurmJob, runAfterCreation: false, schedule: "0 0 1 1 *", slurmJobSpec: {eachWorkerJobs: true, sbatchScript: "#!/bin/bash\ntrue\n"},
		failureReactions: {drainSlurmNode: {drainReasonPrefix: "[hardware_problem]"}}}}`)
	job := manifest.Parse[batchv1.Job](t, `{metadata: {name: run-`+uid+`, namespace: slurm, uid: run-`+uid+`}, spec: {managedBy: `+activecheckplan.ManagedBy+`,
		template: {spec: {containers: [{name: gpu}]}}}}`)
	job.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(check, nebiusv1alpha1.GroupVersion.WithKind("ActiveCheck"))}
	return check, job
}

func simulate(t *testing.T, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		key := []byte("the key of the fake slurmctld")
		w := &world{t: t, slurm: fake.New(fake.Options{Key: key}), events: events.NewFakeRecorder(1000)}
		cluster := manifest.Parse[nebiusv1.SlurmCluster](t, `{metadata: {name: demo, namespace: slurm}, status: {phase: Available}}`)
		check, job := aCheck(t, "first")
		objects := []client.Object{cluster, check, job}
		for i := range 2 {
			name := fmt.Sprintf("w-%d", i)
			w.slurm.Register(fake.Node{Name: name, Partitions: []string{"main", "hidden"}})
			objects = append(objects, manifest.Parse[corev1.Pod](t, `{metadata: {name: `+name+`, namespace: slurm, labels: {slinky.slurm.net/cluster: demo},
				ownerReferences: [{apiVersion: slinky.slurm.net/v1beta1, kind: NodeSet, name: w, uid: w, controller: true}]}, spec: {hostname: `+name+`}}`))
		}
		w.client = serving(t, objects...)
		caches := slurmcache.NewRegistry(slurmcache.Options{Transport: w.slurm.Transport()})
		defer caches.Close()
		issuer, err := token.NewSigned(key, "slurm", 0)
		if err != nil {
			t.Fatal(err)
		}
		asChecks, err := token.NewSigned(key, slurmcache.ChecksUser, 0)
		if err != nil {
			t.Fatal(err)
		}
		if w.cache, err = caches.Set(slurmcache.Key{Namespace: "slurm", Name: "demo"}, slurmcache.Config{Endpoint: "http://slurm:6820", Issuer: issuer, Checks: asChecks}); err != nil {
			t.Fatal(err)
		}
		w.r = &reconciler{
			Base: reconcile.Base{
				Reader:  reference.Reader{Client: w.client, Live: w.client, Metadata: live{reader: w.client}},
				Applier: kube.NewApplier(w.client, w.client), Recorder: w.events, Clock: clock.RealClock{},
			},
			caches: caches, budgets: budget.New(health.DrainLimit{Number: 1}, clock.RealClock{}),
		}
		w.after(time.Minute)
		test(w)
	})
}

// after lets synthetic time pass; it takes no real time.
func (w *world) after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// pass has the operator look at the check once.
func (w *world) pass() {
	w.t.Helper()
	if _, err := w.r.kind().Reconcile(w.t.Context(), ctrl.Request{NamespacedName: gpu()}); err != nil {
		w.t.Fatal(err)
	}
}

// passes has it look every ten seconds for some minutes.
func (w *world) passes() {
	w.t.Helper()
	for range 20 {
		w.pass()
		w.after(10 * time.Second)
	}
}

// delete deletes the check, whose Job Kubernetes has not collected yet.
func (w *world) delete() {
	w.t.Helper()
	check, _ := aCheck(w.t, "first")
	if err := w.client.Delete(w.t.Context(), check); err != nil {
		w.t.Fatal(err)
	}
}

// submitted returns the numbers of the Slurm jobs of the run.
func (w *world) submitted() (ids []int64) {
	w.t.Helper()
	var job batchv1.Job
	if err := w.client.Get(w.t.Context(), types.NamespacedName{Namespace: "slurm", Name: "run-first"}, &job); err != nil {
		w.t.Fatal(err)
	}
	for _, id := range activecheckplan.ReadRecord(job.Annotations).IDs {
		var number int64
		if _, err := fmt.Sscan(id, &number); err != nil {
			w.t.Fatal(err)
		}
		ids = append(ids, number)
	}
	return ids
}

// drains returns the reasons of the drains that Slurm was asked for over HTTP.
func (w *world) drains() (reasons []string) {
	for _, write := range w.slurm.Writes() {
		if write.State == "DRAIN" {
			reasons = append(reasons, write.Nodes+" "+write.Reason)
		}
	}
	return reasons
}

// asked returns how often Slurm was asked for jobs.
func (w *world) asked() (n int) {
	for call, count := range w.slurm.Counters().Calls {
		if strings.HasPrefix(call, "GET job") {
			n += count
		}
	}
	return n
}

// told returns the events since the last call, and whether one of them contains text.
func (w *world) told(text string) (all []string, found bool) {
	for {
		select {
		case e := <-w.events.Events:
			all = append(all, e)
		default:
			return all, slices.ContainsFunc(all, func(e string) bool { return strings.Contains(e, text) })
		}
	}
}

func mergePatch(text string) client.Patch { return client.RawPatch(types.MergePatchType, []byte(text)) }
