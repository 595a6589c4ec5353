// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"encoding/json"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

// Record is that part of the record of a Slurm node which the operator has a say in.
type Record struct {
	Comment  string
	Topology string
	// Features are the available ones, Active those that are active.
	Features []string
	Active   []string
	// Started is when the slurmd started that is registered now.
	Started time.Time
	// Drained is the reason of the node with its time by Slurm's clock. StartedSince says that the slurmd started after it.
	Drained      node.Reason
	StartedSince bool
}

// RecordUpdate is what to change of a record. What is nil stays as it is.
type RecordUpdate struct {
	Comment  *string  `json:"comment,omitempty"`
	Topology *string  `json:"topology,omitempty"`
	Features []string `json:"features,omitempty"`
	Active   []string `json:"active,omitempty"`
}

// Empty says that there is nothing to change.
func (u RecordUpdate) Empty() bool {
	return u.Comment == nil && u.Topology == nil && u.Features == nil && u.Active == nil
}

// String is the update in a form that can be compared.
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
	// Problem is what Slurm said against it; empty when it took the update.
	Problem string
	// Unanswered says that nobody knows whether it took it.
	Unanswered bool
}

// recordRetryInterval is how long not to try again what did not help. What Slurm refuses becomes right by a change of its
// configuration, of which nobody tells us.
const recordRetryInterval = 5 * time.Minute

// unansweredRetryInterval is how long to wait when Slurm did not answer, unless it is heard of before.
const unansweredRetryInterval = 10 * time.Second
