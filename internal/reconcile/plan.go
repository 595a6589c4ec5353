// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/coxswain-hpc/coxswain/internal/render"
)

// Plan is what is to be done for one object. It is data only: Decide makes it of facts, Drive carries it out. A kind that has
// more to do embeds it in a plan of its own.
type Plan struct {
	// Output is what has to exist. With problems, nothing of it but the Secrets is applied.
	render.Output
	// Notes are about fields that have an effect which users may not expect.
	Notes []string
	// Keep are objects that are neither rendered nor pruned: what still serves while its successor starts.
	Keep []client.Object
	// Release are objects that several owners share and that this one does not need any more.
	Release []client.Object
	// Delete are objects of kinds that are not pruned, because a cluster may not serve them. They are deleted if the object
	// controls them.
	Delete []client.Object
}

// Common returns the part of a plan that all kinds have.
func (p *Plan) Common() *Plan { return p }

// Planned is a Plan, or a struct that embeds one.
type Planned interface{ Common() *Plan }
