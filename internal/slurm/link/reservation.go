// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"context"
	"errors"

	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

// Reservations asks Slurm for all reservations. They are few, and asked for when they are needed.
func (l *Link) Reservations(ctx context.Context) ([]rest.Reservation, error) {
	return l.connection.get().Reservations(ctx)
}

// PutReservation makes a reservation, or changes the one of that name. Slurm before 25.05 refuses.
func (l *Link) PutReservation(ctx context.Context, r rest.Reservation) error {
	return l.connection.get().PutReservation(ctx, r)
}

// DeleteReservation deletes a reservation; it succeeds if there is none.
func (l *Link) DeleteReservation(ctx context.Context, name string) error {
	if err := l.connection.get().DeleteReservation(ctx, name); !errors.Is(err, rest.Absent) {
		return err
	}
	return nil
}
