// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/coxswain-hpc/coxswain/internal/controller/slinky/nodeset/nodesetplan"
	"github.com/coxswain-hpc/coxswain/internal/reconcile/perkey"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

// absences remember since when Slurm, whenever it was asked, did not have the nodes of workers. No object has these times: the times on
// pods are from other clocks. All of it may be lost; then the absence is watched for longer.
type absences struct {
	since perkey.Memory[types.UID, map[string]time.Time] // by NodeSet and pod
}

// recall notes what Slurm reports now of the workers of a NodeSet, and fills in what was seen before.
func (a *absences) recall(set types.UID, facts *nodesetplan.Input) {
	a.since.Change(set, func(absent *map[string]time.Time) bool {
		now := map[string]time.Time{}
		for i := range facts.Pods {
			p := &facts.Pods[i]
			if p.Registered != node.No || !p.Ready {
				continue
			}
			since, known := (*absent)[p.Name]
			if !known {
				since = facts.Asked
			}
			p.Absent, now[p.Name] = since, since
		}
		*absent = now
		return len(now) > 0
	})
}
