// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	"github.com/coxswain-hpc/coxswain/internal/controller/nebius/activecheck/activecheckplan"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
	"github.com/coxswain-hpc/coxswain/internal/testing/crdcheck"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// checkSpec is the check whose leaves are changed.
const checkSpec = `{slurmClusterRefName: demo, k8sJobSpec: {jobContainer: {image: check}}}`

// slurmCheckSpec is the check of Slurm jobs whose leaves are changed: those that are about Slurm jobs and their nodes.
const slurmCheckSpec = `{slurmClusterRefName: demo, checkType: slurmJob, slurmJobSpec: {sbatchScript: "#!/bin/true"}}`

// deadOfChecks changes every leaf of an ActiveCheck, as TestEveryLeafIsEffectiveOrTold does for a SlurmCluster, and returns for each
// whether it is reported as without effect.
func deadOfChecks(t *testing.T, definition *crdcheck.CRD) map[string]bool {
	t.Helper()
	dead, last := map[string]bool{}, ""
	crdcheck.Walk("", definition.Schema, func(path string, s *apiextensions.JSONSchemaProps) {
		below, isSpec := strings.CutPrefix(path, ".spec.")
		path = "spec." + below
		schemaless := strings.HasSuffix(path, "SlurmNode")
		if !isSpec || !schemaless && !isLeaf(s) || last != "" && (strings.HasPrefix(path, last+".") || strings.HasPrefix(path, last+"[]")) {
			return
		}
		last = path
		world := func() map[string]any {
			out := definition.Object()
			out["spec"] = crdcheck.Parse(t, checkSpec)
			if strings.HasPrefix(path, "spec.slurmJobSpec.") || strings.Contains(strings.ToLower(path), "reactions.") {
				out["spec"] = crdcheck.Parse(t, slurmCheckSpec)
			}
			switch path {
			case "spec.slurmJobSpec.maxNumberOfJobs":
				put(t, out, "spec.slurmJobSpec.eachWorkerJobs", true)
			case "spec.checkType":
				put(t, out, "spec.slurmJobSpec", crdcheck.Parse(t, `{sbatchScript: "#!/bin/true"}`))
			}
			if reactions, about := strings.CutSuffix(path, ".setCondition"); about {
				put(t, out, reactions+".drainSlurmNode", true)
			}
			if strings.HasPrefix(path, "spec.k8sJobSpec.mungeContainer.") {
				put(t, out, "spec.k8sJobSpec.mungeContainer.image", "munge")
			}
			open(out, path)
			return out
		}
		before, after := world(), world()
		var value any = true
		if !schemaless {
			value = leafValue("ActiveCheck", path, s, at(after, path))
		}
		put(t, after, path, value)
		was, _ := madeOfCheck(t, definition, path, before)
		is, told := madeOfCheck(t, definition, path, after)
		dead[path] = was == is && slices.ContainsFunc(told, func(text string) bool { return names(text, path) })
		if was == is && !dead[path] {
			t.Errorf("%s of ActiveCheck changes nothing that is made, and no condition says so", path)
		}
	})
	if len(dead) < 50 {
		t.Errorf("ActiveCheck has %d leaves only; does the walk see its spec?", len(dead))
	}
	return dead
}

// madeOfCheck returns what a check is made of, as text, and its fields without effect.
func madeOfCheck(t *testing.T, definition *crdcheck.CRD, path string, object map[string]any) (made string, ignored []string) {
	t.Helper()
	if errs := definition.Create(t.Context(), object); len(errs) > 0 {
		t.Errorf("%s: the API server refuses the ActiveCheck: %v", path, errs.ToAggregate())
	}
	check := &nebiusv1alpha1.ActiveCheck{}
	crdcheck.Decode(t, object, check)
	in := activecheckplan.Input{
		Check: check, CronJob: &batchv1.CronJob{}, Script: "#!/bin/false",
		Cluster: &nebiusv1.SlurmCluster{Status: nebiusv1.SlurmClusterStatus{Phase: nebiusv1.PhaseAvailable}},
	}
	if check.Spec.PodTemplateNameRef != "" {
		in.Template = &corev1.PodTemplate{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{NodeName: "leaf"}}}
	}
	in.Workers = []activecheckplan.Worker{{Name: "w-0", Machine: workerpod.Machine{Node: "node", UID: "u"}}}
	in.CronJob.Spec.JobTemplate.Spec.ManagedBy = new(activecheckplan.ManagedBy)
	out := activecheckplan.Decide(in)
	for _, p := range out.Problems {
		if p.Reason != nebiusv1alpha1.ReasonNotServed {
			t.Errorf("%s: its value is a mistake, which shows nothing: %s", path, p.Error())
		}
	}
	data, err := json.Marshal([]any{out.Objects, out.Gate, out.Problems, followsFrom(in)})
	if err != nil {
		t.Fatal(err)
	}
	return string(data), out.Ignored
}

// followsFrom are the Slurm jobs of a run of a check of Slurm jobs, and what follows from their ends.
func followsFrom(in activecheckplan.Input) (all []any) {
	if !activecheckplan.IsSlurmJob(in.Check) {
		return nil
	}
	job := &batchv1.Job{}
	run, _ := activecheckplan.RunOf(in, job)
	var nodes []rest.Node
	for i := range 100 { // more than any limit in the walk
		nodes = append(nodes, rest.Node{Name: fmt.Sprintf("worker-%d", i), State: []string{"IDLE"}})
	}
	all = append(all, activecheckplan.Missing(run, nodes, nil, job))
	for _, state := range []string{"FAILED", "COMPLETED"} {
		reactions, _ := activecheckplan.ReactTo(in.Check, activecheckplan.CheckedJob{ID: "17", State: state, Nodes: []string{"a"}})
		all = append(all, reactions)
	}
	return all
}
