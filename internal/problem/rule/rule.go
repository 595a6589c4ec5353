// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rule is for decisions that are written as ordered lists of named rules. Reading a list from top to bottom is reading the
// specification: docs/contributors/rules.md shows all of them.
package rule

import "slices"

// Rule is one line of a decision about facts F, which gives a result R.
type Rule[F, R any] struct {
	// Name is the condition in words, Does what follows in words, Why the reason for that.
	Name, Does, Why string
	// When is the condition; nil holds always. Then gives the result; nil gives the zero result.
	When func(F) bool
	Then func(F) R
}

// List answers one question. Its rules are asked in order, and the first whose condition holds decides.
type List[F, R any] struct {
	Question string
	Rules    []Rule[F, R]
}

// Decide is the result of the first rule whose condition holds. Facts that embed a Trail remember the rule.
func (l *List[F, R]) Decide(facts F) (result R) {
	for i := range l.Rules {
		r := &l.Rules[i]
		if r.When != nil && !r.When(facts) {
			continue
		}
		if r.Then != nil {
			result = r.Then(facts)
		}
		if facts, ok := any(facts).(interface{ add(Fired) }); ok {
			facts.add(Fired{l.Question, r.line()})
		}
		return result
	}
	return result
}

// Fired is a rule that has decided, and the question that it has answered.
type Fired struct {
	Question string
	Line
}

// Trail has the rules that have decided about facts which embed it and are given to Decide by a pointer, in order. A question that is asked
// twice has its last answer.
type Trail struct{ fired []Fired }

func (t *Trail) add(rule Fired) {
	t.fired = slices.DeleteFunc(t.fired, func(f Fired) bool { return f.Question == rule.Question })
	t.fired = append(t.fired, rule)
}

// Fired returns the rules that have decided.
func (t *Trail) Fired() []Fired { return t.fired }

// LastWhy returns the reason for the last decision.
func (t *Trail) LastWhy() string { return t.fired[len(t.fired)-1].Why }

// Each gives the results of all rules whose conditions hold, in order.
func (l *List[F, R]) Each(facts F, use func(R)) {
	for i := range l.Rules {
		if r := &l.Rules[i]; r.When == nil || r.When(facts) {
			use(r.Then(facts))
		}
	}
}

// Is is a result that does not depend on the facts.
func Is[F, R any](result R) func(F) R { return func(F) R { return result } }

// Line is a rule in words.
type Line struct{ Name, Does, Why string }

func (r *Rule[F, R]) line() Line { return Line{Name: r.Name, Does: r.Does, Why: r.Why} }

// Description is a list in words.
type Description struct {
	Question string
	Lines    []Line
	// Complete is true if the last rule always holds.
	Complete bool
}

// Described is a list of any facts and results.
type Described interface {
	// Describe is the list in words.
	Describe() Description
	// Trace calls seen with the question and the place of each rule that decides. It is for tests of the package that has the list.
	Trace(seen func(question string, line int))
}

// Describe is the list in words.
func (l *List[F, R]) Describe() Description {
	d := Description{Question: l.Question}
	for _, r := range l.Rules {
		d.Lines = append(d.Lines, r.line())
		d.Complete = r.When == nil
	}
	return d
}

// Trace has seen called with the question and the place of each rule that decides.
func (l *List[F, R]) Trace(seen func(question string, line int)) {
	for i := range l.Rules {
		then := l.Rules[i].Then
		l.Rules[i].Then = func(facts F) (result R) {
			seen(l.Question, i)
			if then != nil {
				result = then(facts)
			}
			return result
		}
	}
}

// Words describes lists.
func Words(lists []Described) []Description {
	out := make([]Description, 0, len(lists))
	for _, l := range lists {
		out = append(out, l.Describe())
	}
	return out
}
