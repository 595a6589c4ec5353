// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// Plans are the plans of NodeSets, by name.
type Plans struct {
	NodeSets []Plan `json:"nodeSets"`
	// Edits are those that wait for jobs.
	Edits []WaitingEdit `json:"edits,omitempty"`
}

// Plan is what is going to happen to the workers of a NodeSet.
type Plan struct {
	Namespace string `json:"namespace"`
	NodeSet   string `json:"nodeSet"`
	// DryRun is true if nothing of it is done.
	DryRun bool `json:"dryRun,omitempty"`
	// Steps are the first of all Planned ones.
	Steps   []slinkyv1beta1.NodeSetStep `json:"steps"`
	Planned int32                       `json:"planned"`
}

// NewPlans reads the plans of NodeSets.
func NewPlans(sets []slinkyv1beta1.NodeSet) Plans {
	out := Plans{NodeSets: []Plan{}}
	for i := range sets {
		set := &sets[i]
		plan := Plan{
			Namespace: set.Namespace, NodeSet: set.Name, DryRun: workerpod.DryRun(set), Steps: set.Status.Plan, Planned: set.Status.Planned,
		}
		if plan.Steps == nil {
			plan.Steps = []slinkyv1beta1.NodeSetStep{}
		}
		out.NodeSets = append(out.NodeSets, plan)
	}
	slices.SortFunc(out.NodeSets, func(a, b Plan) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.NodeSet, b.NodeSet))
	})
	return out
}

// write writes the plans as one table. wide adds a line for each NodeSet without a plan.
func (p Plans) write(w io.Writer, wide bool) error {
	out := table{header: []string{"NODESET", "STEP", "POD", "ACTION", "CAUSE", "MESSAGE"}}
	add := func(cells ...string) {
		row := make([]cell, 0, len(cells))
		for _, text := range cells {
			row = append(row, cell{text: oneLine(text)})
		}
		out.rows = append(out.rows, row)
	}
	for _, plan := range p.NodeSets {
		for i, step := range plan.Steps {
			message := step.Message
			if plan.DryRun {
				message = "(dry run) " + message
			}
			add(plan.NodeSet, strconv.Itoa(i+1), step.Pod, step.Action, step.Cause, message)
		}
		if more := int(plan.Planned) - len(plan.Steps); more > 0 {
			add(plan.NodeSet, "…", "", "", "", fmt.Sprintf("%d more steps", more))
		}
		if wide && len(plan.Steps) == 0 {
			add(plan.NodeSet, "", "", "", "", "nothing is planned")
		}
	}
	if len(out.rows) > 0 {
		if err := out.write(w, false); err != nil {
			return err
		}
	}
	text := ""
	if len(out.rows) == 0 && len(p.Edits) == 0 {
		text = "Nothing is planned.\n"
	}
	for _, edit := range p.Edits {
		text += "Controller/" + edit.Controller + ": " + oneLine(edit.Message) + "\n"
	}
	if _, err := io.WriteString(w, text); err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	return nil
}

// rawFrom returns the options of a watch that begins after a resource version.
func rawFrom(version string) *metav1.ListOptions {
	return &metav1.ListOptions{ResourceVersion: version}
}
