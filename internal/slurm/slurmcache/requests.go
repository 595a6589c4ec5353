// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcache

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
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

// Hardware asks for the machine in the record of a node.
func (w *writer) Hardware(ctx context.Context, node string) (rest.Hardware, error) {
	return w.connection.get().Hardware(ctx, node)
}

// MakeCloud makes records of nodes that are powered down, from conf, which is the part of their lines in slurm.conf behind NodeName, and
// writes their comments. Slurm before 25.11 refuses it, as it does where one of the nodes exists.
func (w *writer) MakeCloud(ctx context.Context, conf string, comments map[string]string) Failures {
	nodes, failures := validNames(slices.Collect(maps.Keys(comments)))
	if len(nodes) == 0 {
		return failures
	}
	line := "NodeName=" + hostlist.Compress(slices.Clone(nodes)) + " " + conf + " State=CLOUD"
	if err := w.connection.get().CreateNode(ctx, line); err != nil {
		maps.Copy(failures, all(nodes, err))
		return failures
	}
	maps.Copy(failures, w.Describe(ctx, comments))
	return failures
}

// Describe writes the comments of nodes, each its own.
func (w *writer) Describe(ctx context.Context, comments map[string]string) Failures {
	failures := Failures{}
	for _, name := range slices.SortedFunc(maps.Keys(comments), hostlist.Compare) {
		comment := comments[name]
		if err := w.connection.get().UpdateNodes(ctx, name, rest.NodeUpdate{Comment: &comment}); err != nil {
			failures[name] = err
		}
	}
	w.nodes.poke()
	return failures
}

// Reservations asks Slurm for all reservations. They are few, and asked for when they are needed.
func (l *Cache) Reservations(ctx context.Context) ([]rest.Reservation, error) {
	return l.connection.get().Reservations(ctx)
}

// PutReservation makes a reservation, or changes the one of that name. Slurm before 25.05 refuses.
func (l *Cache) PutReservation(ctx context.Context, r rest.Reservation) error {
	return l.connection.get().PutReservation(ctx, r)
}

// DeleteReservation deletes a reservation; it succeeds if there is none.
func (l *Cache) DeleteReservation(ctx context.Context, name string) error {
	if err := l.connection.get().DeleteReservation(ctx, name); !errors.Is(err, rest.Absent) {
		return err
	}
	return nil
}
