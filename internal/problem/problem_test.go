// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package problem

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestListReasonAndMessage(t *testing.T) {
	waiting := Waitingf("spec.accountingRef", "AccountingNotFound", "Accounting %q does not exist", "db")
	mistake := Errorf("spec.extraConf", "InvalidConfig", "line 3: no value")
	for name, tc := range map[string]struct {
		list            List
		reason, message string
	}{
		"an empty list has neither reason nor message": {},
		"what heals by itself does not stall": {
			list: List{waiting}, reason: "AccountingNotFound",
			message: `spec.accountingRef: Accounting "db" does not exist`,
		},
		"a mistake gives the reason even when something else is awaited first": {
			list: List{waiting, mistake}, reason: "InvalidConfig",
			message: `spec.accountingRef: Accounting "db" does not exist; spec.extraConf: line 3: no value`,
		},
		"the same problem found twice is said once": {
			list: List{mistake, mistake}, reason: "InvalidConfig",
			message: "spec.extraConf: line 3: no value",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.list.Reason(); got != tc.reason {
				t.Errorf("Reason() = %q, want %q", got, tc.reason)
			}
			if got := tc.list.Message(); got != tc.message {
				t.Errorf("Message() = %q, want %q", got, tc.message)
			}
		})
	}
}

func TestListIsInTheOrderOfNumbers(t *testing.T) {
	list := List{
		Errorf("spec.users[10]", "Invalid", "a"), Errorf("spec.extraConf", "Invalid", "line 134: b"), Errorf("spec.users[9]", "Invalid", "a"),
		Errorf("spec.extraConf", "Invalid", "line 5: z"), Errorf("spec.extraConf", "Invalid", "line 05: z"), Errorf("spec.extraConf", "Invalid", "line: y"),
		Errorf("spec.extraConf", "Invalid", "line 5: b"), Errorf("spec.extraConf", "Invalid", "line 99999999999999999999: b"),
	}
	want := []string{
		"spec.extraConf: line 5: b", "spec.extraConf: line 05: z", "spec.extraConf: line 5: z", "spec.extraConf: line 134: b",
		"spec.extraConf: line 99999999999999999999: b", "spec.extraConf: line: y", "spec.users[9]: a", "spec.users[10]: a",
	}
	var got []string
	for _, p := range list.Sorted() {
		got = append(got, p.Error())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// An order that contradicts itself would make messages differ from one call to the next.
func FuzzCompare(f *testing.F) {
	f.Add("line 5", "line 134", "line 05")
	f.Add("a1b", "a01b", "a1")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		if compare(a, b) != -compare(b, a) || (compare(a, b) == 0) != (a == b) {
			t.Errorf("%q and %q: %d, and the other way round %d", a, b, compare(a, b), compare(b, a))
		}
		if compare(a, b) <= 0 && compare(b, c) <= 0 && compare(a, c) > 0 {
			t.Errorf("%q, %q and %q have no order", a, b, c)
		}
	})
}

func TestMessageOfManyProblemsIsBounded(t *testing.T) {
	var list List
	for i := range 1000 {
		list = append(list, Errorf(fmt.Sprintf("spec.items[%d]", i), "Invalid", "%s", strings.Repeat("x", 100)))
	}
	got := list.Message()
	if len(got) > 1100 || !strings.Contains(got, "more") {
		t.Errorf("Message() has %d bytes and ends %q, want at most 1100 and a count of the rest", len(got), got[len(got)-20:])
	}
}

func TestFromErrorSeparatesProblemsFromErrors(t *testing.T) {
	p, other := Errorf("spec.a", "Invalid", "is wrong"), errors.New("reading x: timeout")
	problems, rest := FromError(errors.Join(fmt.Errorf("rendering: %w", p), other))
	if diff := cmp.Diff(List{p}, problems); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	if !errors.Is(rest, other) || errors.Is(rest, p) {
		t.Errorf("rest = %v, want only %v", rest, other)
	}
}
