// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
)

var jobKind = batchv1.SchemeGroupVersion.WithKind("Job")

// aJailedCluster has two workers and a login pod in one jail.
const aJailedCluster = `{metadata: {name: demo}, spec: {volumeSources: [{name: jail, nfs: {server: files, path: /jail}}],
  slurmNodes: {accounting: {enabled: true, embeddedDB: {enabled: true}}, rest: {enabled: true},
    controller: {volumes: {jail: {volumeSourceName: jail}}}, login: {size: 1, volumes: {jail: {volumeSourceName: jail}}},
    worker: {size: 2, volumes: {jail: {volumeSourceName: jail}}}}}}`

const (
	// populatingTakes is how long the Job runs that fills a jail.
	populatingTakes = 20 * time.Second
	// overwrites is the variable that makes the Job copy over what is there.
	overwrites = "OVERWRITE"
)

// populating are scenarios in which a jail is filled.
func populating() []scenario {
	return []scenario{
		{name: "a jail is filled", sparse: 3, leaves: (*world).expectJail, act: func(w *world) { w.cluster(aJailedCluster) }},
		{name: "a jail is overwritten", nodeSet: aJailedCluster, anyEnd: true, sparse: 4, leaves: (*world).expectJail, act: func(w *world) {
			w.occupy(3*time.Minute, "worker-0")
			change(w, "demo", func(c *nebiusv1.SlurmCluster) { c.Spec.PopulateJail.Overwrite = true })
			w.sleep(time.Minute)
			w.maintain(nebiusv1.MaintenanceDownscale)
			w.sleep(6 * time.Minute)
			w.maintain(nebiusv1.MaintenanceNone)
		}},
		{name: "maintenance that overwrites the jail", nodeSet: aJailedCluster, anyEnd: true, sparse: 4, leaves: (*world).expectJail, act: func(w *world) {
			w.occupy(3*time.Minute, "worker-0")
			w.maintain(nebiusv1.MaintenanceDownscaleAndOverwritePopulateJail)
			w.sleep(8 * time.Minute)
			w.maintain(nebiusv1.MaintenanceNone)
		}},
	}
}

// expectJail checks that the jail is filled, and that the cluster runs.
func (w *world) expectJail() {
	c, _ := get[nebiusv1.SlurmCluster](w, "demo")
	if !meta.IsStatusConditionTrue(c.Status.Conditions, nebiusv1.ConditionJailPopulated) {
		w.fail("the jail is filled", "%+v", c)
	}
	w.expectCluster()
}

// jobs runs Jobs for a while, except those with another manager. They succeed.
func (w *world) jobs() {
	for _, job := range w.sim.Objects(jobKind) {
		done, _, _ := unstructured.NestedInt64(job.Object, "status", "succeeded")
		by, _, _ := unstructured.NestedString(job.Object, "spec", "managedBy")
		if job.GetDeletionTimestamp() != nil || done > 0 || by != "" {
			continue
		}
		active, _, _ := unstructured.NestedInt64(job.Object, "status", "active")
		uid := job.GetUID()
		finish := func(status map[string]any) {
			w.edit(jobKind, job.GetNamespace(), job.GetName(), func(j *unstructured.Unstructured) {
				if j.GetUID() == uid {
					_ = unstructured.SetNestedMap(j.Object, status, "status")
				}
			})
		}
		if active == 0 {
			finish(map[string]any{"active": int64(1)})
			w.after(populatingTakes, func() {
				if slices.ContainsFunc(w.sim.Objects(jobKind), func(j *unstructured.Unstructured) bool { return j.GetUID() == uid }) {
					finish(map[string]any{"succeeded": int64(1), "conditions": []any{map[string]any{"type": string(batchv1.JobComplete), "status": string(corev1.ConditionTrue)}}})
				}
			})
		}
	}
}

// judgeOverwriting checks that no root file system is exchanged while it is in use: a Job that overwrites the jail is made when no pod
// is left that has it mounted, and no such pod comes while it runs.
func (w *world) judgeOverwriting(call) {
	job := slices.IndexFunc(w.sim.Objects(jobKind), func(j *unstructured.Unstructured) bool {
		done, _, _ := unstructured.NestedInt64(j.Object, "status", "succeeded")
		return done == 0 && strings.Contains(fmt.Sprint(j.Object["spec"]), "name:"+overwrites+" value:1")
	})
	if job < 0 {
		return
	}
	for _, pod := range w.sim.Objects(podKind) {
		if isWorker(pod) || strings.HasPrefix(pod.GetName(), "demo-login-") {
			w.fail("nobody's jail is overwritten", "Pod %s is there while the jail is overwritten", pod.GetName())
		}
	}
}
