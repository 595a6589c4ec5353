// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"context"

	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

// Slurm's words for requests to power a node up and down.
const (
	powerUp   = "POWER_UP"
	powerDown = "POWER_DOWN"
)

// PowerUp has Slurm power nodes up; nodes that are up stay up.
func (w *writer) PowerUp(ctx context.Context, nodes []string) Failures {
	return w.submit(ctx, w.states, nodes, updating(rest.NodeUpdate{State: powerUp}))
}

// PowerDown has Slurm power nodes down as soon as their jobs have ended. It ends drains, so that a node which somebody else has drained
// or set down stays as it is, with ErrHeld.
func (w *writer) PowerDown(ctx context.Context, nodes []string) Failures {
	return w.submit(ctx, w.states, nodes, updating(rest.NodeUpdate{State: powerDown}))
}
