// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestAllPhasesAreDoneInOrderAndTheFirstTimeCounts(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	done := ""
	does := func(name string, again time.Time, err error) phase {
		return func(context.Context, *scope) (time.Time, error) { done += name; return again, err }
	}
	again, err := (&scope{}).inTurn(t.Context(), []phase{
		does("a", now.Add(time.Minute), errors.New("a fails")), does("b", time.Time{}, nil), does("c", now, errors.New("c fails")),
	})
	if done != "abc" || !again.Equal(now) || err == nil || err.Error() != "a fails\nc fails" {
		t.Errorf("did %s, again at %v: %v", done, again, err)
	}
	if again, err := (&scope{}).inTurn(t.Context(), []phase{does("d", time.Time{}, nil)}); !again.IsZero() || err != nil {
		t.Errorf("without a time and an error: %v, %v", again, err)
	}
}
