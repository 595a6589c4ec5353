// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmctld_test

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmctld"
	"github.com/coxswain-hpc/coxswain/internal/testing/manifest"
)

// lingering renders a Controller with these partitions, and reads the slurm.conf.
func lingering(t *testing.T, in slurmctld.Input, extraConf string, sets ...string) (slurmctld.Output, string) {
	t.Helper()
	in.Controller = in.Controller.DeepCopy()
	in.Controller.Spec.ExtraConf = extraConf
	in.NodeSets = nil
	for _, set := range sets {
		in.NodeSets = append(in.NodeSets, *manifest.Parse[slinkyv1beta1.NodeSet](t, set))
	}
	out := slurmctld.Render(in)
	if len(out.Problems) > 0 {
		t.Fatal(out.Problems.Message())
	}
	return out, configOf(t, out.Objects)
}

func TestAPartitionStaysUntilNoJobNeedsIt(t *testing.T) {
	const (
		both = "PartitionName=old Nodes=ALL Default=YES MaxTime=60\nPartitionName=new Nodes=ALL\n"
		one  = "PartitionName=new Nodes=ALL Default=YES\n"
		set  = `{metadata: {name: gpu}, spec: {controllerRef: {name: demo}, partition: {enabled: true}}}`
		kept = "\nPartitionName=old Nodes=ALL Default=NO MaxTime=60 State=DRAIN\n"
	)
	in := slurmctld.Input{Controller: manifest.Parse[slinkyv1beta1.Controller](t, `{metadata: {name: demo, namespace: ns1}, spec: {}}`)}
	_, first := lingering(t, in, both, set)
	_, wanted := lingering(t, in, one)

	in.Live = slurmctld.ReadLive(map[string]string{"slurm.conf": first})
	out, second := lingering(t, in, one)
	if !slices.Equal(out.EditWaits.Partitions, []string{"gpu", "old"}) && !slices.Equal(out.EditWaits.Partitions, []string{"old", "gpu"}) || !strings.Contains(second, kept) ||
		!strings.Contains(second, "\nNodeSet=gpu Feature=gpu\nPartitionName=gpu Nodes=gpu State=DRAIN Default=NO\n") {
		t.Errorf("%v linger in\n%s", out.EditWaits.Partitions, second)
	}

	in.Live = slurmctld.ReadLive(map[string]string{"slurm.conf": second})
	if again, third := lingering(t, in, one); third != second || again.ConfigDigest != out.ConfigDigest || again.EditWaits.Digest != out.EditWaits.Digest {
		t.Errorf("it does not stay as it is:\n%s\n%s", second, third)
	}
	in.Free = map[string]bool{"gpu": true}
	if out, third := lingering(t, in, one); !slices.Equal(out.EditWaits.Partitions, []string{"old"}) || !strings.Contains(third, kept) || strings.Contains(third, "=gpu") {
		t.Errorf("%v linger in\n%s", out.EditWaits.Partitions, third)
	}
	in.Free["old"] = true
	if out, third := lingering(t, in, one); len(out.EditWaits.Partitions) > 0 || third != wanted {
		t.Errorf("%v linger in\n%s\nwant\n%s", out.EditWaits.Partitions, third, wanted)
	}

	in.Free, in.Controller.Annotations = nil, map[string]string{slinkyv1beta1.AnnotationEndJobs: out.EditWaits.Digest}
	if now, third := lingering(t, in, one); len(now.EditWaits.Partitions) > 0 || third != wanted || now.ConfigDigest != out.EditWaits.Digest {
		t.Errorf("%v linger although their jobs may end:\n%s", now.EditWaits.Partitions, third)
	}
	if another, _ := lingering(t, in, one+"KillWait=31\n"); len(another.EditWaits.Partitions) != 2 {
		t.Errorf("%v linger at another edit than the one whose jobs may end", another.EditWaits.Partitions)
	}
	if back, third := lingering(t, in, both, set); len(back.EditWaits.Partitions) > 0 || third != first {
		t.Errorf("%v linger after the edit was taken back:\n%s", back.EditWaits.Partitions, third)
	}
}

func TestAPartitionThatMovesIntoAnIncludedFileIsNotGone(t *testing.T) {
	const line = "PartitionName=a Nodes=ALL\n"
	in := slurmctld.Input{Controller: manifest.Parse[slinkyv1beta1.Controller](t, `{metadata: {name: demo, namespace: ns1}, spec: {}}`)}
	_, first := lingering(t, in, line+"PartitionName=b Nodes=ALL\n")
	in.Live = slurmctld.ReadLive(map[string]string{"slurm.conf": first})
	in.Files.Config = []slurmctld.File{{ConfigMap: "more", Name: "partitions.conf", Content: line}}
	if out, text := lingering(t, in, "include partitions.conf\n"); !slices.Equal(out.EditWaits.Partitions, []string{"b"}) || strings.Count(text, "PartitionName=a") != 1 {
		t.Errorf("%v linger in\n%s", out.EditWaits.Partitions, text)
	}
}

func TestANodeStaysUntilNoJobNeedsIt(t *testing.T) {
	const (
		both = "NodeName=a,b CPUs=4\nPartitionName=p Nodes=a,b\n"
		one  = "NodeName=b CPUs=4\nPartitionName=p Nodes=b\n"
		kept = "\nNodeName=a CPUs=4 State=DRAIN Reason=\"its line in slurm.conf is to go\"\n"
	)
	in := slurmctld.Input{Controller: manifest.Parse[slinkyv1beta1.Controller](t, `{metadata: {name: demo, namespace: ns1}, spec: {}}`)}
	_, first := lingering(t, in, both)
	_, wanted := lingering(t, in, one)
	in.Live = slurmctld.ReadLive(map[string]string{"slurm.conf": first})
	out, second := lingering(t, in, one)
	if !slices.Equal(out.EditWaits.Nodes, []string{"a"}) || len(out.EditWaits.Partitions) > 0 || !strings.Contains(second, kept) || out.EditWaits.Digest == out.ConfigDigest {
		t.Errorf("%v linger in\n%s", out.EditWaits.Nodes, second)
	}
	in.Live = slurmctld.ReadLive(map[string]string{"slurm.conf": second})
	if _, third := lingering(t, in, one); third != second {
		t.Errorf("it does not stay as it is:\n%s\n%s", second, third)
	}
	if back, third := lingering(t, in, both); len(back.EditWaits.Nodes) > 0 || third != first {
		t.Errorf("%v linger after the edit was taken back:\n%s", back.EditWaits.Nodes, third)
	}
	in.FreeNodes = map[string]bool{"a": true}
	if out, third := lingering(t, in, one); len(out.EditWaits.Nodes) > 0 || third != wanted {
		t.Errorf("%v linger in\n%s\nwant\n%s", out.EditWaits.Nodes, third, wanted)
	}
	in.FreeNodes, in.Controller.Annotations = nil, map[string]string{slinkyv1beta1.AnnotationEndJobs: out.EditWaits.Digest}
	if now, third := lingering(t, in, one); len(now.EditWaits.Nodes) > 0 || third != wanted {
		t.Errorf("%v linger although their jobs may end:\n%s", now.EditWaits.Nodes, third)
	}
	in.Controller.Annotations = nil
	in.Files.Config = []slurmctld.File{{ConfigMap: "more", Name: "nodes.conf", Content: "NodeName=a CPUs=4\n"}}
	if out, third := lingering(t, in, "include nodes.conf\n"+one); len(out.EditWaits.Nodes) > 0 || strings.Count(third, "NodeName=a") != 1 {
		t.Errorf("%v linger although a file that is included has them:\n%s", out.EditWaits.Nodes, third)
	}
}

func TestWhatLingersIsNotedAtTheStatefulSet(t *testing.T) {
	const lines = "NodeName=a,b CPUs=4\nNodeSet=both Nodes=a,b\nPartitionName=old Nodes=both MaxTime=60\nPartitionName=new Nodes=ALL\n"
	const rest = "NodeName=b CPUs=4\nPartitionName=new Nodes=ALL\n"
	in := slurmctld.Input{Controller: manifest.Parse[slinkyv1beta1.Controller](t, `{metadata: {name: demo, namespace: ns1}, spec: {}}`)}
	noted := func(out slurmctld.Output) *appsv1.StatefulSet {
		for _, o := range out.Objects {
			if set, ok := o.(*appsv1.StatefulSet); ok {
				return set
			}
		}
		t.Fatal("there is no StatefulSet")
		return nil
	}
	out, first := lingering(t, in, lines)
	if d := slurmctld.ReadLingering(noted(out)); d != nil {
		t.Errorf("something lingers in a new cluster: %v", d.Entries())
	}
	in.Live = slurmctld.ReadLive(map[string]string{"slurm.conf": first})
	out, second := lingering(t, in, rest)
	in.Live = slurmctld.ReadLingering(noted(out)) // the ConfigMap is lost
	if again, third := lingering(t, in, rest); third != second || again.ConfigDigest != out.ConfigDigest {
		t.Errorf("it is not as it was:\n%s\n%s", second, third)
	}
}
