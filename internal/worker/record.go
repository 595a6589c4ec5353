// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"cmp"
	"encoding/json"
	"time"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/slurm/topology"
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

// record decides what to write about a worker into the record of its Slurm node: contract slinky.md §4.8 and §4.15.
func record(w Worker, action *Action) {
	if !w.Pod.Ready || w.Host.Cordoned == node.Unknown {
		return // another slurmd may stand behind the record, or another Kubernetes node behind the worker
	}
	var update RecordUpdate
	wanted := w.Comment
	comment, ok := node.ParseComment(w.Record.Comment)
	wanted.Registration = cmp.Or(comment.Registration, wanted.Registration) // the record is that of the first who registered
	if comment != wanted && (ok || w.Record.Comment == "") {
		text := wanted.String() // a comment that somebody else wrote stays
		update.Comment = &text
	}
	placed(w, &update, action)
	featured(w, &update, action)
	if update.Empty() {
		return
	}
	if w.worthTrying(update, action) {
		action.Record = update
	}
}

// worthTrying says whether to make an update in view of the last one.
func (w Worker) worthTrying(update RecordUpdate, action *Action) bool {
	same, shown, again := w.Tried.Update == update.String(), w.Asked.After(w.Recorded), time.Time{}
	switch {
	case same && w.Tried.Unanswered:
		again = w.Tried.At.Add(unansweredRetryInterval)
	case same && (w.Tried.Problem != "" || shown && !w.Recording):
		action.trouble(slinkyv1beta1.ReasonRecordRefused, "Slurm did not take %s into the record of node %s: %s; it is tried again every %s",
			update, w.Slurm, cmp.Or(w.Tried.Problem, "it is not shown afterwards"), recordRetryInterval)
		again = w.Tried.At.Add(recordRetryInterval)
	case !shown: // what Slurm says then shows what became of it
		again = w.Now.Add(time.Second)
	}
	if w.Recording {
		return false // its end wakes the worker
	}
	if w.Now.Before(again) {
		action.wake(again)
		return false
	}
	return true
}

// placed puts the Slurm node where the annotation of the Kubernetes node says that it is. Without one, it is where slurmd
// or an administrator has put it.
func placed(w Worker, update *RecordUpdate, action *Action) {
	have, unreadable := topology.Parse(w.Record.Topology)
	if !w.Host.HasTopology {
		displaced(w, have, update, action)
		return
	}
	want, err := topology.Parse(w.Host.Topology)
	if err != nil {
		action.trouble(slinkyv1beta1.ReasonInvalidTopology, "%s; correct the annotation %s of Kubernetes node %s, such as topo-switch:s2,topo-block:b2",
			err, slinkyv1beta1.AnnotationTopologySpec, w.Host.Name)
		return
	}
	if unreadable == nil && have.Same(want) {
		return
	}
	text := want.String()
	update.Topology = &text
}

// displaced takes back where an annotation put the Slurm node that is no longer there: the pod still says where that was.
// When Slurm shows another place, the pod forgets it.
func displaced(w Worker, have topology.Spec, update *RecordUpdate, action *Action) {
	if w.Placed == "" {
		return
	}
	if w.Recording || !w.Asked.After(w.Recorded) {
		action.wake(w.Now.Add(time.Second)) // Slurm has not been asked since the node was put somewhere
		return
	}
	text := ""
	if was, err := topology.Parse(w.Placed); err == nil && len(was) > 0 && have.Same(was) {
		update.Topology = &text
		return
	}
	action.Topology = &text
}

// featured gives the Slurm node the features that the annotation of the Kubernetes node names.
func featured(w Worker, update *RecordUpdate, action *Action) {
	ours, err := node.ParseFeatures(w.Host.Features)
	if err != nil {
		action.trouble(slinkyv1beta1.ReasonInvalidFeatures, "%s; correct the annotation %s of Kubernetes node %s, a comma-separated list",
			err, slinkyv1beta1.AnnotationFeatures, w.Host.Name)
		return
	}
	features, changed := node.WithFeatures(w.Record.Features, ours)
	active, activated := node.WithFeatures(w.Record.Active, ours)
	if changed || activated {
		update.Features, update.Active = features, active
	}
}
