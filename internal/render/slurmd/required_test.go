// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmd_test

import (
	"strings"
	"testing"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/render"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmd"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// TestWorkersThatNeedChecks: a worker registers drained where its NodeSet requires checks, and no other worker is replaced for that.
func TestWorkersThatNeedChecks(t *testing.T) {
	const spec = `{controllerRef: {name: demo}, extraConf: "Weight=2"`
	plain, needy := input(t, spec+`}`), input(t, spec+`, requiredChecks: [gpu, disk]}`)
	before, err := slurmd.RevisionData(plain)
	if err != nil {
		t.Fatal(err)
	}
	if after, err := slurmd.RevisionData(needy); err != nil || string(after) != string(before) {
		t.Errorf("the revision is another one (%v):\n%s\n%s", err, before, after)
	}
	free, err := slurmd.Pod(plain, workerpod.Place{}, "r")
	if err != nil {
		t.Fatal(err)
	}
	waits, err := slurmd.Pod(needy, workerpod.Place{}, "r")
	if err != nil {
		t.Fatal(err)
	}
	if slurmd.Registration(free) != slurmd.Registration(waits) {
		t.Error("the record of the node would be taken for an outdated one")
	}
	if got := waits.Annotations[slinkyv1beta1.AnnotationRequiredChecks]; got != "disk,gpu" {
		t.Errorf("the pod needs %q", got)
	}
	const conf = `Weight=2 State=DRAIN Reason="slurm-operator: waits for checks" Topology=`
	if got := strings.Join(waits.Spec.Containers[0].Args, " "); !strings.Contains(got, conf) {
		t.Errorf("slurmd does not register drained: %s", got)
	}
	saving := input(t, spec+`, requiredChecks: [disk], powerSaving: {}}`)
	pod, err := slurmd.Pod(saving, workerpod.Place{}, "r")
	if err != nil {
		t.Fatal(err)
	}
	var out render.Output
	slurmd.Ignore(saving.NodeSet, &out)
	if pod.Annotations[slinkyv1beta1.AnnotationRequiredChecks] != "" || strings.Join(out.Ignored, " ") != "spec.requiredChecks" {
		t.Errorf("where Slurm powers workers up, %v, and without effect is %v", pod.Annotations, out.Ignored)
	}
}
