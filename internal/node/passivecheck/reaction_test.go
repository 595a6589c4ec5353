// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package passivecheck

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestReactions(t *testing.T) {
	const drains = `{"name": "disk", "on_fail": "drain", "on_ok": "undrain", "contexts": ["prolog", "hc_program"]}`
	const comments = `{"name": "disk", "on_fail": "comment", "on_ok": "uncomment"}`
	full, fine := Result{State: Failed, Details: "91%\n are used"}, Result{State: Passed}
	at := func(states, reason, comment string) *Node {
		return &Node{States: strings.Split(states, "+"), Reason: reason, Comment: comment}
	}
	for _, test := range []struct {
		name, check string
		result      Result
		context     Context
		node        *Node
		want        Action
	}{
		{"nothing is configured", `{}`, full, Prolog, nil, Action{}},
		{"nothing was tested", drains, Result{State: Skipped}, Prolog, nil, Action{}},
		{"the program is not installed", drains, Result{State: Unavailable}, HealthProgram, nil, Action{}},
		{"a failure asks for the node", drains, full, Prolog, nil, Action{Need: NeedNode}},
		{"a failure drains", drains, full, Prolog, at("IDLE", "", ""), Action{Kind: Drain, Text: "[node_problem] disk: 91% are used [prolog]"}},
		{"a drained node keeps its reason", drains, full, Prolog, at("IDLE+DRAIN", "by hand", ""), Action{}},
		{"a success before a job asks nobody", drains, fine, Prolog, nil, Action{}},
		{"a success before a job asks for the node where HealthCheckProgram will not", `{"on_ok": "undrain", "contexts": ["prolog"]}`, fine, Prolog, nil, Action{Need: NeedNode}},
		{"a success of HealthCheckProgram asks for the node", drains, fine, HealthProgram, nil, Action{Need: NeedNode}},
		{"a success undrains what the check drained", drains, fine, HealthProgram, at("IDLE+DRAIN", "[node_problem] disk: 91% [prolog]", ""), Action{Kind: Undrain}},
		{"a success leaves a person's drain", drains, fine, HealthProgram, at("IDLE+DRAIN", "by hand", ""), Action{}},
		{"a success leaves another check's drain", drains, fine, HealthProgram, at("IDLE+DRAIN", "[node_problem] disk2 [prolog]", ""), Action{}},
		{"a success leaves an old reason", drains, fine, HealthProgram, at("IDLE", "[node_problem] disk [prolog]", ""), Action{}},
		{"a failure comments", comments, full, Epilog, at("IDLE", "", ""), Action{Kind: SetComment, Text: "[node_problem] disk: 91% are used [epilog]"}},
		{"a comment of the check is renewed", comments, full, Epilog, at("IDLE", "", "[node_problem] disk"), Action{Kind: SetComment, Text: "[node_problem] disk: 91% are used [epilog]"}},
		{"a comment of the operator stays", comments, full, Epilog, at("IDLE", "", `{"pod":"x"}`), Action{}},
		{"a success removes the comment", comments, fine, HealthProgram, at("IDLE", "", "[node_problem] disk: x"), Action{Kind: SetComment}},
		{"a success removes no other comment", comments, fine, HealthProgram, at("IDLE", "", "mine"), Action{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := parsed(t, test.check).React(test.result, test.context, test.node)
			if got.Kind != test.want.Kind || got.Text != test.want.Text || got.Need != test.want.Need {
				t.Errorf("%+v, want %+v", got, test.want)
			}
		})
	}
}

func TestReasons(t *testing.T) {
	for _, test := range []struct{ name, check, details, want string }{
		{"a reason has base, details and context", `{"name": "disk"}`, "full", "[node_problem] disk: full [hc_program]"},
		{"a reason has no details when there are none", `{"name": "disk"}`, " \n", "[node_problem] disk [hc_program]"},
		{"details are not wanted", `{"name": "disk", "reason_append_details": false}`, "full", "[node_problem] disk [hc_program]"},
		{"the base has names", `{"name": "disk", "reason_base": "[x] $name in $context"}`, "", "[x] disk in hc_program [hc_program]"},
		{"a name with a dollar is not replaced again", `{"name": "$context"}`, "", "[node_problem] $context [hc_program]"},
		{"long details are cut", `{"name": "disk"}`, strings.Repeat("é", 300), "[node_problem] disk: " + strings.Repeat("é", 222) + " [hc_program]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := parsed(t, test.check).Reason(HealthProgram, test.details); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// TestWhatACheckDidIsItsOwn has any check recognise its own drains, and take back nothing else.
func TestWhatACheckDidIsItsOwn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-z_.]{1,12}`)
		check := func(label string) Check {
			return Check{Name: name.Draw(t, label), OnFail: reactDrain, OnOK: reactUndrain, Contexts: []string{anyValue}, ReasonBase: defaultReasonBase, ReasonAppendDetails: true}
		}
		a, b := check("a"), check("b")
		node := Node{States: []string{"IDLE"}}
		drain := a.React(Result{State: Failed, Details: rapid.String().Draw(t, "details")}, HealthProgram, &node)
		if drain.Kind != Drain {
			t.Fatalf("%+v", drain)
		}
		node = Node{States: []string{"IDLE", "DRAIN"}, Reason: drain.Text}
		if got := a.React(Result{}, HealthProgram, &node); got.Kind != Undrain {
			t.Fatalf("%q is not taken for its own: %+v", drain.Text, got)
		}
		if got := b.React(Result{}, HealthProgram, &node); got.Kind == Undrain && !strings.HasPrefix(a.Name, b.Name) {
			t.Fatalf("%s takes back the drain of %s", b.Name, a.Name)
		}
	})
}
