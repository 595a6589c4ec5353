// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package workerplan

import (
	"cmp"
	"time"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/problem/rule"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/slurm/topology"
)

// recordFacts are what decides about a change of the record: Slurm's record, and the annotations of the Kubernetes node.
type recordFacts struct {
	*facts
	comment   node.Comment
	isComment bool
	have      topology.Spec
	haveErr   error
	want      topology.Spec
	wantErr   error
	features  []string
	invalid   error
	// update is what is to be changed, and text its String.
	update RecordUpdate
	text   string
}

// record decides what to write about a worker into the record of its Slurm node: docs/contributors/predecessors/slinky-workers.md#topology
// and docs/contributors/predecessors/slinky-workers.md#comment-and-features.
func record(f *facts, action *Action) {
	if !f.Pod.Ready || f.Host.Cordoned == node.Unknown {
		return // another slurmd may stand behind the record, or another Kubernetes node behind the worker
	}
	r := &recordFacts{facts: f}
	r.comment, r.isComment = node.ParseComment(f.Record.Comment)
	r.have, r.haveErr = topology.Parse(f.Record.Topology)
	if f.Host.HasTopology {
		r.want, r.wantErr = topology.Parse(f.Host.Topology)
	}
	r.features, r.invalid = node.ParseFeatures(f.Host.Features)
	r.update.Comment = comments.Decide(r)
	place := places.Decide(r)
	r.update.Topology = place.update
	if place.mark != nil {
		action.Marks.Topology = place.mark
	}
	action.wake(place.again)
	action.report(place.trouble)
	features := features.Decide(r)
	r.update.Features, r.update.Active = features.available, features.active
	action.report(features.trouble)
	if r.update.Empty() {
		return
	}
	r.text = r.update.String()
	if r.refused() {
		t := trouble(slinkyv1beta1.ReasonRecordRefused, "Slurm did not accept %s for the record of node %s: %s; the operator retries every %s",
			r.update, f.Slurm, cmp.Or(f.LastAttempt.Problem, "Slurm does not show the change afterwards"), recordRetryInterval)
		action.report(&t)
	}
	attempt := attempts.Decide(r)
	action.wake(attempt.again)
	if attempt.made {
		action.Record = r.update
	}
}

// report adds something that a person has to look at.
func (a *Action) report(t *Trouble) {
	if t != nil {
		a.Shown.Troubles = append(a.Shown.Troubles, *t)
	}
}

//nolint:gochecknoglobals // a constant list
var comments = rule.List[*recordFacts, *string]{
	Question: "What becomes of the comment of the Slurm node?",
	Rules: []rule.Rule[*recordFacts, *string]{
		{
			Name: "somebody else wrote it", Does: "it stays", Why: "it is theirs",
			When: func(r *recordFacts) bool { return !r.isComment && r.Record.Comment != "" },
		},
		{
			Name: "it says what it should", Does: "it stays", Why: "no write when nothing differs",
			When: func(r *recordFacts) bool { return r.comment == r.wantedComment() },
		},
		{
			Name: "otherwise", Does: "write which pod it is", Why: "the operator finds the worker of a node by it, also after a restart",
			Then: func(r *recordFacts) *string {
				text := r.wantedComment().String()
				return &text
			},
		},
	},
}

// wantedComment returns the comment that the node is to have: the registration stays that of the first who registered.
func (r *recordFacts) wantedComment() node.Comment {
	wanted := r.Comment
	wanted.Registration = cmp.Or(r.comment.Registration, wanted.Registration)
	return wanted.WithNote(drainNotes.Decide(r))
}

// place is what becomes of the node's topology: update for Slurm, and mark for the pod.
type place struct {
	update, mark *string
	again        time.Time
	trouble      *Trouble
}

//nolint:gochecknoglobals // a constant list
var places = rule.List[*recordFacts, place]{
	Question: "Where does Slurm's topology have the node?",
	Rules: []rule.Rule[*recordFacts, place]{
		{
			Name: "no annotation says it, and none has", Does: "it stays where it is", Why: "slurmd or an administrator has put it there",
			When: func(r *recordFacts) bool { return !r.Host.HasTopology && r.Topology == "" },
		},
		{
			Name: "no annotation says it any more, and Slurm has not been asked since the last write", Does: "look again in a second", Why: "Slurm may not show yet where the annotation put it",
			When: func(r *recordFacts) bool { return !r.Host.HasTopology && (r.Recording || !r.asked()) },
			Then: func(r *recordFacts) place { return place{again: r.Now.Add(time.Second)} },
		},
		{
			Name: "no annotation says it any more, and it is where the last one put it", Does: "take it out of the topology", Why: "the pod still says where that was",
			When: func(r *recordFacts) bool { return !r.Host.HasTopology && r.isWherePlaced() },
			Then: func(*recordFacts) place { return place{update: new(string)} },
		},
		{
			Name: "no annotation says it any more, and it is somewhere else", Does: "the pod forgets where it was", Why: "somebody else has put it where it is",
			When: func(r *recordFacts) bool { return !r.Host.HasTopology },
			Then: func(*recordFacts) place { return place{mark: new(string)} },
		},
		{
			Name: "the annotation is invalid", Does: "it stays, and NeedsAttention says so", Why: "only a person can correct it",
			When: func(r *recordFacts) bool { return r.wantErr != nil },
			Then: func(r *recordFacts) place {
				t := trouble(slinkyv1beta1.ReasonInvalidTopology, "%s; correct the annotation %s of Kubernetes node %s, such as topo-switch:s2,topo-block:b2",
					r.wantErr, slinkyv1beta1.AnnotationTopologySpec, r.Host.Name)
				return place{trouble: &t}
			},
		},
		{
			Name: "it is where the annotation says", Does: "it stays", Why: "no write when nothing differs",
			When: func(r *recordFacts) bool { return r.haveErr == nil && r.have.Same(r.want) },
		},
		{
			Name: "otherwise", Does: "put it where the annotation says", Why: "who annotates a Kubernetes node knows its place",
			Then: func(r *recordFacts) place {
				text := r.want.String()
				return place{update: &text}
			},
		},
	},
}

// asked reports whether Slurm has been asked since the last update of the record arrived.
func (r *recordFacts) asked() bool { return r.SnapshotTime.After(r.Recorded) }

// isWherePlaced reports whether Slurm has the node in the place that the pod shows, where the annotation put it last.
func (r *recordFacts) isWherePlaced() bool {
	was, err := topology.Parse(r.Topology)
	return err == nil && len(was) > 0 && r.have.Same(was)
}

// featureUpdate is which features the node is to have; nil leaves them.
type featureUpdate struct {
	available, active []string
	trouble           *Trouble
}

//nolint:gochecknoglobals // a constant list
var features = rule.List[*recordFacts, featureUpdate]{
	Question: "Which features does the Slurm node have?",
	Rules: []rule.Rule[*recordFacts, featureUpdate]{
		{
			Name: "the annotation is invalid", Does: "they stay, and NeedsAttention says so", Why: "only a person can correct it",
			When: func(r *recordFacts) bool { return r.invalid != nil },
			Then: func(r *recordFacts) featureUpdate {
				t := trouble(slinkyv1beta1.ReasonInvalidFeatures, "%s; correct the annotation %s of Kubernetes node %s, a comma-separated list",
					r.invalid, slinkyv1beta1.AnnotationFeatures, r.Host.Name)
				return featureUpdate{trouble: &t}
			},
		},
		{
			Name: "otherwise", Does: "add those of the annotation that are missing", Why: "those of slurmd and of administrators stay beside ours",
			Then: func(r *recordFacts) (update featureUpdate) {
				available, changed := node.WithFeatures(r.Record.Features, r.features)
				active, activated := node.WithFeatures(r.Record.Active, r.features)
				if changed || activated {
					update.available, update.active = available, active
				}
				return update
			},
		},
	},
}

// attempt is whether an update is made now, and when to look again otherwise.
type attempt struct {
	made  bool
	again time.Time
}

//nolint:gochecknoglobals // a constant list
var attempts = rule.List[*recordFacts, attempt]{
	Question: "Is an update of the record made now?",
	Rules: []rule.Rule[*recordFacts, attempt]{
		{
			Name: "one is on its way", Does: "no", Why: "its end wakes the worker",
			When: func(r *recordFacts) bool { return r.Recording },
		},
		{
			Name: "Slurm did not answer to the same one, less than ten seconds ago", Does: "not yet", Why: "it may be down",
			When: func(r *recordFacts) bool {
				return r.unanswered() && r.Now.Before(r.LastAttempt.At.Add(unansweredRetryInterval))
			},
			Then: func(r *recordFacts) attempt { return attempt{again: r.LastAttempt.At.Add(unansweredRetryInterval)} },
		},
		{
			Name: "Slurm did not answer to the same one", Does: "yes", Why: "nobody knows whether it took it",
			When: (*recordFacts).unanswered, Then: rule.Is[*recordFacts](attempt{made: true}),
		},
		{
			Name: "Slurm refused the same one, less than five minutes ago", Does: "not yet", Why: "it becomes right by a change of Slurm's configuration, of which nobody tells us",
			When: func(r *recordFacts) bool {
				return r.refused() && r.Now.Before(r.LastAttempt.At.Add(recordRetryInterval))
			},
			Then: func(r *recordFacts) attempt { return attempt{again: r.LastAttempt.At.Add(recordRetryInterval)} },
		},
		{
			Name: "Slurm refused the same one", Does: "yes", Why: "Slurm's configuration may have changed",
			When: (*recordFacts).refused, Then: rule.Is[*recordFacts](attempt{made: true}),
		},
		{
			Name: "Slurm has not been asked since the last one", Does: "not yet", Why: "what Slurm says then shows what became of it",
			When: func(r *recordFacts) bool { return !r.asked() },
			Then: func(r *recordFacts) attempt { return attempt{again: r.Now.Add(time.Second)} },
		},
		{Name: "otherwise", Does: "yes", Why: "the record is not what it should be", Then: rule.Is[*recordFacts](attempt{made: true})},
	},
}

// unanswered reports whether Slurm did not answer to the same update.
func (r *recordFacts) unanswered() bool {
	return r.LastAttempt.Update == r.text && r.LastAttempt.Unanswered
}

// refused reports whether Slurm refused the same update, or does not show it afterwards.
func (r *recordFacts) refused() bool {
	return r.LastAttempt.Update == r.text && !r.LastAttempt.Unanswered && (r.LastAttempt.Problem != "" || r.asked() && !r.Recording)
}
