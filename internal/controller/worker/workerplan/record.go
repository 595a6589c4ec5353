// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package workerplan

import (
	"encoding/json"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

// Record is the part of the record of a Slurm node that the operator may change.
type Record struct {
	Comment  string
	Topology string
	// Features are the available ones, Active those that are active.
	Features []string
	Active   []string
	// Started is when the slurmd started that is registered now.
	Started time.Time
	// Drained is the reason of the node with its time by Slurm's clock. StartedSince reports whether the slurmd started after it.
	Drained      node.Reason
	StartedSince bool
}

// RecordUpdate is what to change of a record. Nil fields stay as they are.
type RecordUpdate struct {
	Comment  *string  `json:"comment,omitempty"`
	Topology *string  `json:"topology,omitempty"`
	Features []string `json:"features,omitempty"`
	Active   []string `json:"active,omitempty"`
}

// Empty reports whether there is nothing to change.
func (u RecordUpdate) Empty() bool {
	return u.Comment == nil && u.Topology == nil && u.Features == nil && u.Active == nil
}

// String returns the update in a form that can be compared.
func (u RecordUpdate) String() string {
	text, err := json.Marshal(u)
	if err != nil {
		return "" // strings always marshal
	}
	return string(text)
}

// Attempt is an update of a record that was made, or tried.
type Attempt struct {
	// Update is its String; empty for none.
	Update string
	At     time.Time
	// Problem is Slurm's message when it refused the update; empty when it took it.
	Problem string
	// Unanswered reports whether Slurm did not answer, so that it may have taken the update or not.
	Unanswered bool
}

// recordRetryInterval is how long an update that did not help is not tried again. What Slurm refuses becomes right by a change of its
// configuration, of which we get no event.
const recordRetryInterval = 5 * time.Minute

// unansweredRetryInterval is how long to wait when Slurm did not answer, unless it answers before.
const unansweredRetryInterval = 10 * time.Second
