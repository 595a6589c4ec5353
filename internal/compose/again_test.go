// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/slurm/topology"
)

// copied is a deep copy of an input, with everything that has no order shuffled.
func copied(t *rapid.T, in Input) Input {
	out := Input{Cluster: in.Cluster.DeepCopy(), Observed: in.Observed, Images: in.Images}
	for i := range in.NodeSets {
		out.NodeSets = append(out.NodeSets, *in.NodeSets[i].DeepCopy())
	}
	seen := &out.Observed
	seen.NodeSets = nil
	for _, set := range in.Observed.NodeSets {
		seen.NodeSets = append(seen.NodeSets, ObservedNodeSet{Object: set.Object.DeepCopy(), SourceGone: set.SourceGone})
	}
	seen.Populate.Job = in.Observed.Populate.Job.DeepCopy()
	seen.Rest.Controller = in.Observed.Rest.Controller.DeepCopy()
	seen.Rest.Accounting = in.Observed.Rest.Accounting.DeepCopy()
	seen.Rest.LoginSet = in.Observed.Rest.LoginSet.DeepCopy()
	seen.Workers = slices.Clone(in.Observed.Workers)
	if t == nil {
		return out
	}
	if len(out.NodeSets) > 1 {
		out.NodeSets = rapid.Permutation(out.NodeSets).Draw(t, "order")
	}
	if len(seen.NodeSets) > 1 {
		seen.NodeSets = rapid.Permutation(seen.NodeSets).Draw(t, "order of what is seen")
	}
	if len(seen.Workers) > 1 {
		seen.Workers = rapid.Permutation(seen.Workers).Draw(t, "order of workers")
	}
	return out
}

// anyCluster is a SlurmCluster with a jail and NodeSets, some sections of which are arbitrary, and nothing observed.
func anyCluster(t *rapid.T) Input {
	in := Input{Cluster: jailedCluster()}
	spec := reflect.ValueOf(&in.Cluster.Spec).Elem()
	in.Cluster.Spec.SlurmConfig.TopologyPlugin = rapid.SampledFrom([]*string{nil, new(topologyTree), new(topologyBlock)}).Draw(t, "topology")
	for range rapid.IntRange(0, 3).Draw(t, "sections") {
		scribble(t, anyField(t, spec), 0)
	}
	in.Cluster.Spec.Maintenance = rapid.SampledFrom([]nebiusv1.MaintenanceMode{
		nebiusv1.MaintenanceNone, nebiusv1.MaintenanceDownscale, nebiusv1.MaintenanceDownscaleAndDeletePopulateJail,
		nebiusv1.MaintenanceDownscaleAndOverwritePopulateJail, nebiusv1.MaintenanceSkipPopulateJail,
	}).Draw(t, "mode")
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 3, rapid.ID).Draw(t, "nodeSets") {
		set := nebiusv1alpha1.NodeSet{}
		set.Name, set.Namespace = name, in.Cluster.Namespace
		set.Spec.Replicas = new(rapid.Int32Range(0, 3).Draw(t, "replicas"))
		scribble(t, anyField(t, reflect.ValueOf(&set.Spec).Elem()), 0)
		in.NodeSets = append(in.NodeSets, set)
	}
	return in
}

// observe makes some of the composed objects exist, in some state.
func observe(t *rapid.T, seen *Observed, out Output) {
	parts := out.Components
	if rapid.Bool().Draw(t, "exists") {
		seen.Rest = ObservedRest{Controller: parts.Controller, Accounting: parts.Accounting, LoginSet: parts.LoginSet, Workers: rapid.IntRange(0, 2).Draw(t, "pods")}
		parts.Controller.Spec.Suspend = rapid.Bool().Draw(t, "suspended")
	}
	seen.Populate = ObservedPopulate{Job: jobIn(out), Users: rapid.IntRange(0, 1).Draw(t, "users"), Writers: rapid.IntRange(0, 1).Draw(t, "writers")}
	seen.Installed = rapid.SampledFrom([]Installed{{}, AllInstalled()}).Draw(t, "installed")
	for _, set := range parts.NodeSets {
		gone := rapid.SampledFrom([]node.Answer{node.Unknown, node.Yes, node.No}).Draw(t, "gone")
		seen.NodeSets = append(seen.NodeSets, ObservedNodeSet{Object: set, SourceGone: gone})
		for i := range rapid.IntRange(0, 3).Draw(t, "workers") {
			at := topology.Location{Block: fmt.Sprint("leaf", i%2), Switches: []string{fmt.Sprint("leaf", i%2), "spine"}}
			seen.Workers = append(seen.Workers, ObservedWorker{Name: set.Hostname(i), NodeSet: set.Name, Location: at, Registered: types.UID(fmt.Sprint(i))})
		}
	}
}

// TestAnyClusterIsComposedTheSameAgain checks that composing any SlurmCluster, whatever is observed of it, ends without a panic,
// does not change its input, and gives the same result again in another order.
func TestAnyClusterIsComposedTheSameAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := anyCluster(t)
		for range 2 { // as it is made, and as it is then
			before := copied(nil, in)
			out := Cluster(in)
			if !reflect.DeepEqual(copied(nil, in), before) {
				t.Fatal("composing changes what it is given")
			}
			if !reflect.DeepEqual(out, Cluster(copied(t, in))) {
				t.Fatal("another order says something else")
			}
			if out.Components.Controller == nil || out.Components.RestAPI == nil {
				return
			}
			if gone := rapid.IntRange(0, len(in.NodeSets)).Draw(t, "kept"); gone < len(in.NodeSets) {
				in.NodeSets = slices.Delete(slices.Clone(in.NodeSets), gone, gone+1)
			}
			observe(t, &in.Observed, Cluster(copied(nil, in)))
		}
	})
}
