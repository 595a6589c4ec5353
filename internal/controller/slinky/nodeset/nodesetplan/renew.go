// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodesetplan

import (
	"time"

	"github.com/coxswain-hpc/coxswain/internal/problem/rule"
)

const (
	// MaxRecordDeleteTime is how long the deletion of an outdated record is tried before its worker is made all the same. It is longer than a
	// call without an answer lasts.
	MaxRecordDeleteTime = 90 * time.Second
	// RecordDeleteRetryInterval is how long to wait after each try.
	RecordDeleteRetryInterval = 2 * time.Second
)

// Renewal is how far the deletion of outdated records is, before workers are made that would register into them.
type Renewal struct {
	Now time.Time
	// Since is since when some could not be deleted, or looked at; zero when all could.
	Since time.Time
	// Heard reports whether Slurm answers, and Failed whether a deletion failed.
	Heard, Failed bool
	// Reachable reports whether the Controller reports Slurm as reachable.
	Reachable bool
}

// RenewalWait is whether workers wait for the deletion of records: Again is when to try again, zero when they are made. Since is to be
// remembered.
type RenewalWait struct {
	Since, Again time.Time
}

//nolint:gochecknoglobals // a constant list
var renewals = rule.List[*Renewal, RenewalWait]{
	Question: "Do new workers wait until outdated records are deleted?",
	Rules: []rule.Rule[*Renewal, RenewalWait]{
		{
			Name: "Slurm answers, and nothing is left to be deleted", Does: "no", Why: "the records of the new workers are made anew",
			When: func(r *Renewal) bool { return r.Heard && !r.Failed },
		},
		{
			Name: "Slurm answers, and has not deleted a record for 90 seconds", Does: "no", Why: "the worker is made all the same, and its pod says what is wrong",
			When: func(r *Renewal) bool { return r.Heard && r.tried() && !r.worthTrying() },
		},
		{
			Name: "Slurm answers, and has not deleted a record", Does: "yes, and it is tried again", Why: "Slurm may delete it in a moment",
			When: func(r *Renewal) bool { return r.Heard && r.tried() }, Then: func(r *Renewal) RenewalWait { return r.wait(r.Since) },
		},
		{
			Name: "Slurm answers, and a deletion has just failed", Does: "yes, and it is tried again", Why: "Slurm may delete it in a moment",
			When: func(r *Renewal) bool { return r.Heard }, Then: func(r *Renewal) RenewalWait { return r.wait(r.Now) },
		},
		{
			Name: "Slurm is not heard of, for less than 90 seconds", Does: "yes", Why: "nobody knows which records there are",
			When: func(r *Renewal) bool { return r.tried() && r.worthTrying() }, Then: func(r *Renewal) RenewalWait { return r.wait(r.Since) },
		},
		{
			Name: "Slurm is not heard of, and the Controller says that it is reachable", Does: "yes", Why: "an operator that has just started hears of it in a moment",
			When: func(r *Renewal) bool { return r.Reachable }, Then: func(r *Renewal) RenewalWait { return r.wait(r.Now) },
		},
		{
			Name: "otherwise", Does: "no", Why: "workers are made also while Slurm is away",
			Then: func(r *Renewal) RenewalWait { return RenewalWait{Since: r.Since} },
		},
	},
}

// Renew decides whether new workers wait until outdated records are deleted.
func Renew(r Renewal) RenewalWait { return renewals.Decide(&r) }

func (r *Renewal) tried() bool       { return !r.Since.IsZero() }
func (r *Renewal) worthTrying() bool { return r.Now.Sub(r.Since) < MaxRecordDeleteTime }

func (r *Renewal) wait(since time.Time) RenewalWait {
	return RenewalWait{Since: since, Again: r.Now.Add(RecordDeleteRetryInterval)}
}
