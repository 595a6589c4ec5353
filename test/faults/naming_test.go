// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

// A slurmctld that reads its configuration ends jobs that name a node of which it has no record.
func TestNoEditEndsAJobThatNamesAWorkerThatIsReplaced(t *testing.T) {
	t.Parallel()
	const replaced, edited = "Weight=9", "KillWait=31"
	replace := func(w *world) {
		change(w, "w", func(n *slinkyv1beta1.NodeSet) { n.Spec.ExtraConf = replaced })
	}
	edit := func(w *world) {
		change(w, "demo", func(c *slinkyv1beta1.Controller) { c.Spec.ExtraConf = edited })
	}
	for _, tt := range []struct {
		name        string
		first, then func(w *world)
		waits       bool
	}{
		{"an edit that comes when the worker is gone waits", replace, edit, true},
		{"a worker that is replaced when the edit has come does not keep it", edit, replace, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, clocks{})
				defer w.close()
				w.boot()
				w.cluster(threeWorkers)
				w.settle()
				runs := w.slurm.Submit(fake.Job{NodeList: []string{"w-0"}})
				named := w.slurm.Submit(fake.Job{NodeList: []string{"w-0"}})
				w.registersAs = map[string]string{"w-0": ""} // the next one is long in starting
				tt.first(w)
				w.slurm.Finish(runs)
				w.slurm.Hold(named)
				w.sleep(2 * time.Minute)
				tt.then(w)
				w.sleep(10 * time.Minute)
				live := func() bool {
					m, _ := get[corev1.ConfigMap](w, "demo-config")
					return strings.Contains(m.Data["slurm.conf"], edited)
				}
				if _, there := w.slurm.Node("w-0"); there || live() == tt.waits {
					t.Errorf("the record is there: %t; the edit is live: %t", there, live())
				}
				w.slurm.Register(fake.Node{Name: "w-0", CPUs: 4, Partitions: []string{"main", "hidden"}})
				w.sleep(10 * time.Minute)
				if !live() {
					t.Error("the edit is not live at last")
				}
				if got, _ := w.slurm.Job(named); !slices.Equal(got.State, []string{"PENDING"}) {
					t.Errorf("the job is %s", got.State)
				}
			})
		})
	}
}

// The fake does not by itself drain the node when slurmctld reads its line.
func TestTheLineOfANodeStaysUntilNoJobNeedsIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, clocks{})
		defer w.close()
		w.boot()
		w.cluster(threeWorkers)
		configure := func(text string) {
			change(w, "demo", func(c *slinkyv1beta1.Controller) { c.Spec.ExtraConf = text })
			w.sleep(time.Minute)
		}
		expect := func(when string, want bool) {
			t.Helper()
			m, _ := get[corev1.ConfigMap](w, "demo-config")
			if got := strings.Contains(m.Data["slurm.conf"], "\nNodeName=outside CPUs=4 State=DRAIN "); got != want {
				t.Errorf("%s the line is there: %t\n%s", when, got, m.Data["slurm.conf"])
			}
		}
		configure("NodeName=outside CPUs=4")
		w.slurm.Register(fake.Node{Name: "outside", CPUs: 4})
		runs := w.slurm.Submit(fake.Job{NodeList: []string{"outside"}})
		names := w.slurm.Submit(fake.Job{NodeList: []string{"outside"}})
		configure("")
		expect("before the node is drained", true)
		w.drainBy("slurm", "outside", "its line in slurm.conf is to go")
		w.sleep(time.Minute)
		expect("while a job runs there", true)
		w.slurm.Finish(runs)
		w.crash()
		w.sleep(time.Minute)
		expect("while a job names it", true)
		w.slurm.Cancel(names)
		w.sleep(time.Minute)
		expect("at last", false)
		m, _ := get[corev1.ConfigMap](w, "demo-config")
		if strings.Contains(m.Data["slurm.conf"], "outside") {
			t.Errorf("the node is left in\n%s", m.Data["slurm.conf"])
		}
	})
}

func TestWhatLingersOutlivesTheConfigMap(t *testing.T) {
	t.Parallel()
	for name, happens := range map[string]func(w *world){
		"the operator runs": func(w *world) { remove[corev1.ConfigMap](w, "demo-config") },
		"the operator is restarted meanwhile": func(w *world) {
			w.crash()
			remove[corev1.ConfigMap](w, "demo-config")
		},
		"the operator is restarted meanwhile, and the edit is another one": func(w *world) {
			w.crash()
			remove[corev1.ConfigMap](w, "demo-config")
			change(w, "demo", func(c *slinkyv1beta1.Controller) { c.Spec.ExtraConf = "KillWait=31" })
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, clocks{})
				defer w.close()
				w.boot()
				w.cluster(threeWorkers)
				change(w, "demo", func(c *slinkyv1beta1.Controller) {
					c.Spec.ExtraConf = "NodeName=outside CPUs=4\nPartitionName=main Nodes=ALL"
				})
				w.sleep(time.Minute)
				w.slurm.Register(fake.Node{Name: "outside", CPUs: 4})
				w.slurm.Submit(fake.Job{NodeList: []string{"outside"}})
				w.slurm.Submit(fake.Job{NodeList: []string{"w-0"}})
				change(w, "demo", func(c *slinkyv1beta1.Controller) { c.Spec.ExtraConf = "" })
				w.sleep(time.Minute)
				happens(w)
				w.sleep(time.Minute)
				m, _ := get[corev1.ConfigMap](w, "demo-config")
				for _, line := range []string{"PartitionName=main Nodes=ALL State=DRAIN", "NodeName=outside CPUs=4 State=DRAIN"} {
					if text := m.Data["slurm.conf"]; !strings.Contains(text, "\n"+line) {
						t.Errorf("it has no %s:\n%s", line, text)
					}
				}
			})
		})
	}
}
