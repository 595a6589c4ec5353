// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package problem describes mistakes in what users wrote. Pure code (rendering, composing, planning) returns problems
// beside its result; controllers turn them into one condition and one event. A problem is not an error: errors are what
// Kubernetes or Slurm did not answer, and are retried; a problem stays until somebody edits an object.
package problem

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Problem is one mistake: where it is, what kind it is, and what to do about it.
type Problem struct {
	// Path names the field, from the object's root: "spec.template.spec", "spec.slurmNodes.worker.k8sNodeFilterName".
	Path string
	// Reason is an API constant in CamelCase, fit for a condition's reason.
	Reason string
	// Message is what is wrong and the way out, in one sentence.
	Message string
	// Waiting is true for a problem that resolves itself: a referenced object that does not exist yet. Such a problem makes an
	// object not ready, but not stalled.
	Waiting bool
}

// Error makes a problem usable as an error value inside pure code; see FromError.
func (p Problem) Error() string {
	if p.Path == "" {
		return p.Message
	}
	return p.Path + ": " + p.Message
}

// Errorf is a problem at path with a formatted message.
func Errorf(path, reason, format string, args ...any) Problem {
	return Problem{Path: path, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Waitingf is a problem at path that resolves itself when what is missing appears.
func Waitingf(path, reason, format string, args ...any) Problem {
	return Problem{Path: path, Reason: reason, Message: fmt.Sprintf(format, args...), Waiting: true}
}

// List is the problems of one object, in the order in which they were found.
type List []Problem

// Sorted returns the list ordered by path and message, without repetitions, so that a message made of it is stable. Numbers in them
// count as numbers: line 5 comes before line 134.
func (l List) Sorted() List {
	out := slices.Clone(l)
	slices.SortFunc(out, func(a, b Problem) int {
		return cmp.Or(compare(a.Path, b.Path), compare(a.Message, b.Message), cmp.Compare(a.Reason, b.Reason))
	})
	return slices.Compact(out)
}

// compare orders texts, and the numbers in them by value.
func compare(a, b string) int {
	x, y := a, b
	for x != "" && y != "" {
		m, n := digits(x), digits(y)
		if m == 0 || n == 0 {
			if x[0] != y[0] {
				break
			}
			x, y = x[1:], y[1:]
			continue
		}
		// Of numbers without leading zeros the longer one is the greater one.
		one, other := strings.TrimLeft(x[:m], "0"), strings.TrimLeft(y[:n], "0")
		if order := cmp.Or(cmp.Compare(len(one), len(other)), cmp.Compare(one, other)); order != 0 {
			return order
		}
		x, y = x[m:], y[n:]
	}
	return cmp.Or(cmp.Compare(x, y), cmp.Compare(a, b))
}

// digits is how many digits a text begins with.
func digits(text string) int {
	return len(text) - len(strings.TrimLeft(text, "0123456789"))
}

// Reason is the reason to show for the whole list: that of the first problem that needs a person, else of the first.
func (l List) Reason() string {
	sorted := l.Sorted()
	for _, p := range sorted {
		if !p.Waiting {
			return p.Reason
		}
	}
	if len(sorted) > 0 {
		return sorted[0].Reason
	}
	return ""
}

// Message joins all problems into one text of at most 1,024 bytes, with the number that it left out.
func (l List) Message() string {
	const maxLength = 1024
	sorted := l.Sorted()
	var b strings.Builder
	for i, p := range sorted {
		text := p.Error()
		if i > 0 {
			text = "; " + text
		}
		if i > 0 && b.Len()+len(text) > maxLength {
			fmt.Fprintf(&b, "; and %d more", len(sorted)-i)
			break
		}
		b.WriteString(text)
	}
	return b.String()
}

// OneLine returns a text on one line, for a condition: errors.Join writes each of its errors on a line of its own.
func OneLine(text string) string { return strings.ReplaceAll(text, "\n", "; ") }

// FromError returns the problems that err is made of. Any part of err that is not a problem comes back as rest.
func FromError(err error) (problems List, rest error) {
	if err == nil {
		return nil, nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var others []error
		for _, e := range joined.Unwrap() {
			ps, r := FromError(e)
			problems = append(problems, ps...)
			others = append(others, r)
		}
		return problems, errors.Join(others...)
	}
	if p, ok := errors.AsType[Problem](err); ok {
		return List{p}, nil
	}
	return nil, err
}
