// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestQuestions(t *testing.T) {
	type answers struct{ Busy, Drain, Drained, Draining, Down, NotResponding Answer }
	of := func(s State) answers {
		return answers{s.Busy(), s.Drain(), s.Drained(), s.Draining(), s.Down(), s.NotResponding()}
	}
	tests := []struct {
		name  string
		state string
		want  answers
	}{
		{"idle is idle", "IDLE", answers{No, No, No, No, No, No}},
		{"flags that do not matter do not matter", "IDLE CLOUD DYNAMIC_NORM PLANNED RESERVED BLOCKED EXTERNAL", answers{No, No, No, No, No, No}},
		{"case and blanks do not matter", " idle Drain", answers{No, Yes, Yes, No, No, No}},
		{"a drained node has no jobs", "IDLE DRAIN", answers{No, Yes, Yes, No, No, No}},
		{"a draining node has jobs", "ALLOCATED DRAIN", answers{Yes, Yes, No, Yes, No, No}},
		{"mixed is busy", "MIXED DRAIN", answers{Yes, Yes, No, Yes, No, No}},
		{"completing is busy", "IDLE COMPLETING DRAIN", answers{Yes, Yes, No, Yes, No, No}},
		{"undrain takes drain back", "IDLE DRAIN UNDRAIN", answers{No, No, No, No, No, No}},
		{"a node that is down and drained is both", "DOWN DRAIN NOT_RESPONDING", answers{No, Yes, Yes, No, Yes, Yes}},
		{"down alone is not drained", "DOWN", answers{No, No, No, No, Yes, No}},
		{"allocated and silent is still busy", "ALLOCATED NOT_RESPONDING", answers{Yes, No, No, No, No, Yes}},
		{"a future node has no jobs", "FUTURE", answers{No, No, No, No, No, No}},
		{"an empty list says nothing", "", answers{}},
		{"UNKNOWN says nothing", "UNKNOWN", answers{}},
		{"UNKNOWN and drained is not drained", "UNKNOWN DRAIN", answers{Drain: Yes}},
		{"flags without a base say nothing of jobs", "DRAIN", answers{Drain: Yes}},
		{"two bases contradict each other", "IDLE DOWN DRAIN", answers{Drain: Yes, Down: Yes}},
		{"two bases contradict each other, and one with jobs holds", "IDLE ALLOCATED DRAIN", answers{Busy: Yes, Drain: Yes, Drained: No, Draining: Yes}},
		{"a flag from the future may mean jobs", "IDLE DRAIN HIBERNATING", answers{Unknown, Yes, Unknown, Unknown, No, No}},
		{"a flag from the future is no drain", "IDLE HIBERNATING", answers{Unknown, No, No, No, No, No}},
		{"a node that is down may have jobs by it", "DOWN NOT_RESPONDING HIBERNATING", answers{Unknown, No, No, No, Yes, Yes}},
		{"a flag from the future makes no busy node doubtful", "ALLOCATED HIBERNATING", answers{Yes, No, No, No, No, No}},
		{"a base from the future says nothing", "HIBERNATING DRAIN", answers{Drain: Yes}},
		{"INVALID makes idle doubtful", "IDLE INVALID DRAIN", answers{Drain: Yes}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, of(Parse(strings.Fields(tt.state)))); diff != "" {
				t.Error(diff)
			}
		})
	}
	if diff := cmp.Diff(answers{}, of(State{})); diff != "" {
		t.Errorf("the zero value: %s", diff)
	}
}

func TestStateKeepsWhatSlurmSaid(t *testing.T) {
	s := Parse([]string{"DRAIN", "IDLE", "HIBERNATING", "idle", ""})
	if got, want := s.String(), "IDLE+DRAIN+HIBERNATING"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if s.Base() != Idle || s.Certain() || !s.Has(Drain) || s.Has(Down) {
		t.Errorf("%v: Base %v, Certain %t", s, s.Base(), s.Certain())
	}
	if diff := cmp.Diff([]Word{"HIBERNATING"}, s.Unrecognised()); diff != "" {
		t.Error(diff)
	}
	if !s.Equal(Parse([]string{"HIBERNATING", "IDLE", "DRAIN"})) || s.Equal(State{}) {
		t.Error("Equal is wrong")
	}
	if got := (State{}).String(); got != "UNKNOWN" {
		t.Errorf("the zero value is %s", got)
	}
}

// TestEveryWordOfTheOpenAPIDocumentsIsKnown reads testdata/states.json, the words of node state in the OpenAPI documents of
// Slurm 24.11.5 (v0.0.42) and 26.05.5 (v0.0.45).
func TestEveryWordOfTheOpenAPIDocumentsIsKnown(t *testing.T) {
	b, err := os.ReadFile("testdata/states.json")
	if err != nil {
		t.Fatal(err)
	}
	var versions map[string][]string
	if err := json.Unmarshal(b, &versions); err != nil {
		t.Fatal(err)
	}
	for version, words := range versions {
		if unknown := Parse(words).Unrecognised(); len(words) == 0 || len(unknown) > 0 {
			t.Errorf("%s: %d words, unrecognised %v", version, len(words), unknown)
		}
	}
}

func TestConditions(t *testing.T) {
	tests := []struct {
		name, state string
		want        []string
	}{
		{"a base has a condition", "IDLE DYNAMIC_NORM", []string{"SlurmNodeStateIdle"}},
		{"flags have conditions too, in a fixed order", "NOT_RESPONDING DOWN DRAIN FAIL", []string{"SlurmNodeStateDown", "SlurmNodeStateDrain", "SlurmNodeStateFail", "SlurmNodeStateNotResponding"}},
		{"an empty state is unknown", "", []string{"SlurmNodeStateUnknown"}},
		{"an unrecognised word makes idle unknown", "IDLE HIBERNATING DRAIN", []string{"SlurmNodeStateUnknown", "SlurmNodeStateDrain"}},
		{"an unrecognised word leaves down as it is", "DOWN HIBERNATING", []string{"SlurmNodeStateDown"}},
		{"an unrecognised word leaves mixed as it is", "MIXED HIBERNATING", []string{"SlurmNodeStateMixed"}},
		{"two bases are unknown", "IDLE MIXED", []string{"SlurmNodeStateUnknown"}},
		{"all flags that have a condition show it", "ERROR COMPLETING DRAIN FAIL INVALID INVALID_REG MAINTENANCE NOT_RESPONDING UNDRAIN POWERED_DOWN",
			[]string{"SlurmNodeStateUnknown", "SlurmNodeStateCompleting", "SlurmNodeStateDrain", "SlurmNodeStateFail", "SlurmNodeStateInvalid",
				"SlurmNodeStateInvalidReg", "SlurmNodeStateMaintenance", "SlurmNodeStateNotResponding", "SlurmNodeStateUndrain"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, Parse(strings.Fields(tt.state)).Conditions()); diff != "" {
				t.Error(diff)
			}
		})
	}
	if got := len(AllConditions()); got != 15 {
		t.Errorf("there are %d types", got)
	}
}

// aWord draws words of which some are unknown.
func aWord() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{"UNKNOWN", "DOWN", "IDLE", "ALLOCATED", "ERROR", "MIXED", "FUTURE", "DRAIN", "UNDRAIN", "COMPLETING",
		"NOT_RESPONDING", "INVALID", "FAIL", "DYNAMIC_NORM", "PLANNED", "HIBERNATING"})
}

func TestUnknownIsNotIdle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(aWord(), 0, 5).Draw(t, "words")
		s := Parse(words)
		if s.Drained() == Yes && !s.Certain() {
			t.Fatalf("%v is drained", s)
		}
		if s.Drained() == Yes && (s.Busy() != No || s.Drain() != Yes || s.Draining() != No) {
			t.Fatalf("%v is drained and something else", s)
		}
		for _, busy := range []Word{Allocated, Mixed, Completing} {
			if s.Has(busy) && s.Busy() != Yes {
				t.Fatalf("%v is not busy", s)
			}
		}
		for _, c := range s.Conditions() {
			if c == ConditionPrefix+"Idle" && s.Busy() != No && !s.Has(Completing) {
				t.Fatalf("%v shows as idle", s)
			}
		}
		worse := Parse(append(words, "HIBERNATING"))
		if worse.Drained() == Yes || worse.Busy() == No {
			t.Fatalf("%v: an unknown word makes nothing certain", worse)
		}
		if worse.Drain() != s.Drain() || worse.Down() != s.Down() || worse.NotResponding() != s.NotResponding() {
			t.Fatalf("%v: an unknown word changes what has nothing to do with jobs", worse)
		}
		if known := Parse(slices.DeleteFunc(slices.Clone(words), func(w string) bool { return w == "HIBERNATING" })); !worse.Recognised().Equal(known) {
			t.Fatalf("%v is recognised as %v", worse, worse.Recognised())
		}
	})
}

func TestAnswerLogic(t *testing.T) {
	all := []Answer{Unknown, No, Yes}
	for _, a := range all {
		for _, b := range all {
			if a.And(b) != b.And(a) || a.Or(b) != a.Not().And(b.Not()).Not() {
				t.Errorf("%v, %v", a, b)
			}
		}
		if a.And(No) != No || a.Or(Yes) != Yes || a.And(Yes) != a || a.Or(No) != a || a.Not().Not() != a {
			t.Errorf("%v", a)
		}
	}
	if (Unknown).And(Unknown) != Unknown || Unknown.Not() != Unknown {
		t.Error("Unknown became something")
	}
	if Yes.String()+No.String()+Unknown.String() != "YesNoUnknown" {
		t.Error("String is wrong")
	}
}

func FuzzParse(f *testing.F) {
	f.Add("IDLE DRAIN")
	f.Add("idle+drain \x00 ALLOCATED")
	f.Fuzz(func(t *testing.T, text string) {
		s := Parse(strings.Fields(text))
		if again := Parse(strings.Split(s.String(), "+")); len(s.words) > 0 && !strings.Contains(text, "+") && !again.Equal(s) {
			t.Fatalf("%v became %v", s, again)
		}
		if s.Drained() == Yes && !s.Certain() {
			t.Fatal(s)
		}
		for _, c := range s.Conditions() {
			if !slices.Contains(AllConditions(), c) {
				t.Fatalf("condition %q", c)
			}
		}
	})
}
