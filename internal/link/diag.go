// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"context"

	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

// Diag asks slurmctld how it is, and who has called it how often.
func (l *Link) Diag(ctx context.Context) (rest.Diag, error) {
	diag, err := l.connection.get().Diag(ctx)
	l.records.account(getDiag)
	return diag, err
}
