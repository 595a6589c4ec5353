// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"fmt"
	"strings"
)

// Problem is a mistake in a text that a user wrote. It never repeats a value, which may be a password.
type Problem struct {
	// Line of the text, counted from 1; 0 if the mistake is in no particular line.
	Line int
	// Key that the problem is about; empty if none could be read.
	Key string
	// Message is what is wrong and what to do about it.
	Message string
}

// Error gives the problem with its place, as in: line 3: ClusterName: it is set by the operator …
func (p Problem) Error() string {
	var b strings.Builder
	if p.Line > 0 {
		fmt.Fprintf(&b, "line %d: ", p.Line)
	}
	if p.Key != "" {
		fmt.Fprintf(&b, "%s: ", p.Key)
	}
	return b.String() + p.Message
}
