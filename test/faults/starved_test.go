// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

// slurms lets the Slurm answer that a request is for.
type slurms struct{ world *world }

// RoundTrip is http.RoundTripper.
func (s slurms) RoundTrip(r *http.Request) (*http.Response, error) {
	cluster, _, _ := strings.Cut(r.URL.Host, "-restapi.")
	return s.world.slurmOf(cluster).Transport().RoundTrip(r)
}

// TestOneSilentClusterStarvesNoOther lets the Slurm of one of four clusters fall silent, wholly or to everything but what keeps its
// Slurm cache Fresh. It does so when all NodeSets of all clusters have something to read and to write. More NodeSets of the silent cluster
// are reconciled than there are reconciles at once.
func TestOneSilentClusterStarvesNoOther(t *testing.T) {
	const sets = 6 // of the silent cluster; four are reconciled at once
	hold := func(*http.Request) *fake.Fault { return &fake.Fault{Hold: make(chan struct{})} }
	for name, silent := range map[string]func(*http.Request) *fake.Fault{
		"one Slurm is wholly silent": hold,
		"one Slurm is silent but for lists of nodes": func(r *http.Request) *fake.Fault {
			if r.Method == http.MethodGet && listsNodes(r) {
				return nil
			}
			return hold(r)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, clocks{})
				defer w.close()
				w.others = map[string]*fake.Slurm{}
				alive := []string{"a", "b", "c"}
				for _, cluster := range alive {
					w.others[cluster] = fake.New(fake.Options{})
				}
				w.boot()
				w.clusterOf("demo", sets)
				for _, cluster := range alive {
					w.clusterOf(cluster, 1)
				}
				w.sleep(3 * time.Minute)
				w.slurm.SetFault(silent)
				defer w.slurm.SetFault(nil)
				start := time.Now().Add(time.Hour)
				for _, set := range w.sim.Objects(slinkyv1beta1.GroupVersion.WithKind("NodeSet")) {
					change(w, set.GetName(), func(n *slinkyv1beta1.NodeSet) {
						n.Spec.Replicas = new(int32(2))
						n.Spec.UpdateStrategy = maintenance(start)
					})
				}
				w.cordon("true")
				w.sleep(5 * time.Second)
				w.expectServed(t, alive)
				w.sleep(time.Minute) // its NodeSets come back again and again
				w.cordon("")
				w.sleep(5 * time.Second)
				for _, cluster := range alive {
					if drained := drainedNodes(w.others[cluster]); len(drained) > 0 {
						t.Errorf("cluster %s: %v are drained still", cluster, drained)
					}
				}
				w.sleep(2 * time.Second)
			})
		})
	}
}

// clusterOf creates a cluster with so many NodeSets of one worker.
func (w *world) clusterOf(name string, sets int) {
	create[slinkyv1beta1.Controller](w, fmt.Sprintf(`{metadata: {name: %s}, spec: {}}`, name))
	create[slinkyv1beta1.RestApi](w, fmt.Sprintf(`{metadata: {name: %s}, spec: {controllerRef: {name: %s}}}`, name, name))
	for i := range sets {
		create[slinkyv1beta1.NodeSet](w, fmt.Sprintf(`{metadata: {name: %s-w%d}, spec: {controllerRef: {name: %s}, replicas: 1}}`, name, i, name))
	}
}

// maintenance returns an update at a time.
func maintenance(start time.Time) slinkyv1beta1.NodeSetUpdateStrategy {
	return slinkyv1beta1.NodeSetUpdateStrategy{
		Type:            slinkyv1beta1.UpdateScheduled,
		ScheduledUpdate: &slinkyv1beta1.ScheduledUpdate{StartTime: new(metav1.NewTime(start))},
	}
}

// expectServed checks that what was asked for of the clusters that answer has been done.
func (w *world) expectServed(t *testing.T, clusters []string) {
	t.Helper()
	for _, cluster := range clusters {
		slurm := w.others[cluster]
		if drained := drainedNodes(slurm); !slices.Equal(drained, []string{cluster + "-w0-0"}) {
			t.Errorf("cluster %s: drained are %v", cluster, drained)
		}
		if pods := slices.DeleteFunc(w.sim.Objects(podKind), func(p *unstructured.Unstructured) bool { return clusterOf(p) != cluster }); len(pods) != 2 {
			t.Errorf("cluster %s has %d workers", cluster, len(pods))
		}
		if len(slurm.Reservations()) != 1 {
			t.Errorf("cluster %s has %d reservations", cluster, len(slurm.Reservations()))
		}
	}
}

// drainedNodes returns the nodes that are drained.
func drainedNodes(slurm *fake.Slurm) []string {
	var out []string
	for _, name := range slurm.Names() {
		if status, _ := slurm.Node(name); node.Parse(status.State).Drain() == node.Yes {
			out = append(out, name)
		}
	}
	return out
}
