// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

// What Slurm has forgotten is remembered beyond the life of an operator, or workers that are made anew would soon outnumber it.
func TestALossOfStateIsNotedInEveryStateOfTheNodeSet(t *testing.T) {
	for name, test := range map[string]struct {
		spec   string
		change func(w *world)
	}{
		"at rest":       {threeWorkers, func(*world) {}},
		"being deleted": {threeWorkers, func(w *world) { remove[slinkyv1beta1.NodeSet](w, "w") }},
		"with a mistake": {threeWorkers, func(w *world) {
			change(w, "w", func(n *slinkyv1beta1.NodeSet) {
				n.Spec.SSH.Enabled = true
				n.Spec.SSH.SssdConfRef = &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "none"}, Key: "sssd.conf"}
			})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, clocks{})
				defer w.close()
				w.boot()
				w.cluster(test.spec)
				w.settle()
				for _, worker := range []string{"w-0", "w-1", "w-2"} {
					w.slurm.Submit(fake.Job{NodeList: []string{worker}, CPUs: 1, Duration: time.Hour})
				}
				before := w.workers()
				test.change(w)
				w.sleep(10 * time.Second)
				w.restartSlurm(false, 30*time.Minute)
				w.sleep(10 * time.Minute)
				n, _ := get[slinkyv1beta1.NodeSet](w, "w")
				if !meta.IsStatusConditionTrue(n.Status.Conditions, slinkyv1beta1.ConditionWorkersUnknown) {
					t.Fatalf("it is not noted: %+v", n)
				}
				// Two of three are made anew by a user, and the operator starts anew.
				for _, worker := range []string{"w-0", "w-1"} {
					w.sim.Remove(podKind, namespace, worker)
					w.slurm.Register(fake.Node{Name: worker, CPUs: 4})
				}
				w.crash()
				w.sleep(10 * time.Minute)
				if p := w.pod("w-2"); p == nil || p.GetDeletionTimestamp() != nil || before[2] != "w-2 "+string(p.GetUID()) {
					t.Errorf("w-2 is gone, where a job runs that Slurm has forgotten")
				}
				for _, v := range w.violations {
					t.Error(v)
				}
			})
		})
	}
}

// It is not only the note that keeps workers: an operator that cannot write it deletes nothing, either.
func TestALossOfStateCountsBeforeItIsNoted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, clocks{})
		defer w.close()
		w.boot()
		w.cluster(threeWorkers)
		w.settle()
		w.occupy(time.Hour, "w-0", "w-1", "w-2")
		w.scale(2)
		w.sleep(10 * time.Second)
		w.mu.Lock()
		w.inject = func(c call) verdict {
			if c.to == "kubernetes" && strings.HasSuffix(c.path, "nodesets/w/status") {
				return verdict{refuse: http.StatusForbidden, name: "no right to write the note"}
			}
			return verdict{}
		}
		w.mu.Unlock()
		w.restartSlurm(false, 30*time.Minute)
		w.sleep(10 * time.Minute)
		if n, _ := get[slinkyv1beta1.NodeSet](w, "w"); meta.IsStatusConditionTrue(n.Status.Conditions, slinkyv1beta1.ConditionWorkersUnknown) {
			t.Fatalf("it is noted: %+v", n)
		}
		if got := w.workers(); len(got) != 3 {
			t.Errorf("of three workers with jobs that Slurm has forgotten there are left %v", got)
		}
		for _, v := range w.violations {
			t.Error(v)
		}
	})
}
