// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcache

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// listOf makes a list from "a=IDLE b=DRAIN".
func listOf(text string) rest.NodeList {
	list := rest.NodeList{Updated: noon}
	for field := range strings.FieldsSeq(text) {
		name, state, _ := strings.Cut(field, "=")
		list.Nodes = append(list.Nodes, &rest.Node{Name: name, State: []string{state}})
	}
	return list
}

func many(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "n%d=IDLE ", i)
	}
	return b.String()
}

func TestSlurmsClockIsComparedWithOurs(t *testing.T) {
	tests := []struct {
		name  string
		shown []time.Duration // by list, how far ahead Slurm's clock was
		want  time.Duration
	}{
		{"clocks that show the same", []time.Duration{0}, 0},
		{"an answer that took a while", []time.Duration{3 * time.Second, -time.Second}, 0},
		{"a clock that is ahead", []time.Duration{10 * time.Minute}, 10 * time.Minute},
		{"a clock that is behind", []time.Duration{-10 * time.Minute}, -10 * time.Minute},
		{"a difference that wavers", []time.Duration{10 * time.Minute, 10*time.Minute + 2*time.Second, 10*time.Minute - 20*time.Second}, 10 * time.Minute},
		{"a clock that was set", []time.Duration{10 * time.Minute, 0}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := &Snapshot{}
			for _, ahead := range tt.shown {
				list := listOf("a=IDLE")
				list.Updated = noon.Add(ahead)
				s, _ = s.following(noon, list, nil)
			}
			s, _ = s.following(noon.Add(time.Hour), rest.NodeList{Unchanged: true}, nil)
			if s.Ahead != tt.want {
				t.Errorf("Slurm's clock is taken to be %s ahead, want %s", s.Ahead, tt.want)
			}
		})
	}
}

func TestTrustFollowsTheAnswers(t *testing.T) {
	unavailable, malformed := &rest.Error{Kind: rest.Unavailable}, &rest.Error{Kind: rest.Malformed}
	unauthorized, refused := &rest.Error{Kind: rest.Unauthorized}, &rest.Error{Kind: rest.Refused}
	type answer struct {
		after time.Duration
		list  string // "=" is unchanged
		err   error
	}
	tests := map[string]struct {
		answers []answer
		trust   Trust
		nodes   int
	}{
		"nothing yet is stale":                             {nil, Stale, 0},
		"a first list is fresh":                            {[]answer{{0, many(3), nil}}, Fresh, 3},
		"a first list without nodes is fresh":              {[]answer{{0, "", nil}}, Fresh, 0},
		"unchanged is fresh":                               {[]answer{{0, many(3), nil}, {0, "=", nil}}, Fresh, 3},
		"no answer is stale, and the nodes stay":           {[]answer{{0, many(3), nil}, {0, "", unavailable}}, Stale, 3},
		"a bad token is stale":                             {[]answer{{0, many(3), nil}, {0, "", unauthorized}}, Stale, 3},
		"nonsense is suspect, and the nodes stay":          {[]answer{{0, many(3), nil}, {0, "", malformed}}, Suspect, 3},
		"a refusal is suspect":                             {[]answer{{0, many(3), nil}, {0, "", refused}}, Suspect, 3},
		"no answer does not lift a suspicion":              {[]answer{{0, many(3), nil}, {0, "", malformed}, {0, "", unavailable}}, Suspect, 3},
		"a good answer lifts a suspicion":                  {[]answer{{0, many(3), nil}, {0, "", malformed}, {0, "=", nil}}, Fresh, 3},
		"an empty list after nodes is suspect":             {[]answer{{0, many(1), nil}, {0, "", nil}}, Suspect, 0},
		"less than half is suspect":                        {[]answer{{0, many(9), nil}, {0, many(4), nil}}, Suspect, 4},
		"half is fresh":                                    {[]answer{{0, many(8), nil}, {0, many(4), nil}}, Fresh, 4},
		"a slow loss is fresh":                             {[]answer{{0, many(8), nil}, {0, many(4), nil}, {0, many(2), nil}, {0, many(1), nil}}, Fresh, 1},
		"a loss stays suspect while nothing changes":       {[]answer{{0, many(9), nil}, {0, many(4), nil}, {4 * time.Minute, "=", nil}}, Suspect, 4},
		"a loss stays suspect while more is lost":          {[]answer{{0, many(9), nil}, {0, many(4), nil}, {4 * time.Minute, many(3), nil}}, Suspect, 3},
		"a loss that stays so is believed":                 {[]answer{{0, many(9), nil}, {0, many(4), nil}, {5 * time.Minute, "=", nil}}, Fresh, 4},
		"a loss that is made good is fresh":                {[]answer{{0, many(9), nil}, {0, "", nil}, {time.Minute, many(5), nil}}, Fresh, 5},
		"a loss after one that was made good counts anew":  {[]answer{{0, many(9), nil}, {0, "", nil}, {0, many(9), nil}, {6 * time.Minute, "", nil}}, Suspect, 0},
		"a loss is not believed because nobody could look": {[]answer{{0, many(9), nil}, {0, "", nil}, {time.Hour, "", unavailable}}, Suspect, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s, now := &Snapshot{Trust: Stale, Why: "nothing yet"}, noon
			for _, a := range test.answers {
				now = now.Add(a.after)
				list := listOf(a.list)
				if a.list == "=" {
					list = rest.NodeList{Unchanged: true}
				}
				s, _ = s.following(now, list, a.err)
			}
			if s.Trust != test.trust || s.Len() != test.nodes {
				t.Errorf("snapshot is %s with %d nodes, want %s with %d", s.Trust, s.Len(), test.trust, test.nodes)
			}
			if (s.Trust == Fresh) != (s.Why == "") {
				t.Errorf("snapshot is %s because %q", s.Trust, s.Why)
			}
			_, exists := s.Node("nobody")
			if want := map[Trust]node.Answer{Fresh: node.No, Stale: node.Unknown, Suspect: node.Unknown}[s.Trust]; exists != want {
				t.Errorf("an unknown node exists: %s, in a snapshot that is %s", exists, s.Trust)
			}
			if busy := s.State("n0").Busy(); (busy == node.No) != (s.Trust == Fresh && test.nodes > 0) || busy == node.Yes {
				t.Errorf("an idle node is busy: %s, in a snapshot that is %s", busy, s.Trust)
			}
		})
	}
}

func TestSnapshotTellsWhatChanged(t *testing.T) {
	tests := map[string]struct {
		before, after string
		want          []string
	}{
		"nothing":          {"a=IDLE b=IDLE", "b=IDLE a=IDLE", nil},
		"a new node":       {"a=IDLE", "a=IDLE b=IDLE", []string{"b"}},
		"a node that went": {"a=IDLE b=IDLE c=IDLE", "a=IDLE c=IDLE", []string{"b"}},
		"a state":          {"a=IDLE b=IDLE", "a=IDLE b=DRAIN", []string{"b"}},
		"all at once":      {"a=IDLE b=IDLE c=IDLE", "c=DOWN d=IDLE a=IDLE", []string{"b", "c", "d"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			before, _ := new(Snapshot).following(noon, listOf(test.before), nil)
			after, changed := before.following(noon, listOf(test.after), nil)
			if diff := cmp.Diff(test.want, changed); diff != "" {
				t.Errorf("changed (-want +got):\n%s", diff)
			}
			kept, _ := before.Node("a")
			if now, _ := after.Node("a"); now != kept {
				t.Error("a node that did not change is another object")
			}
		})
	}
}

func TestNodesThatVanishWithMostOthersAreForgottenUntilTheyComeBack(t *testing.T) {
	tests := []struct {
		name  string
		lists []string // dynamic nodes, but for those of slurm.conf in capitals
		meant []string // deleted by the cache before the last list
		want  string
	}{
		{"no node is forgotten while none vanishes", []string{"a b c", "a b c"}, nil, ""},
		{"a record that somebody deleted is not forgotten", []string{"a b c", "a b"}, nil, ""},
		{"half of the nodes are not forgotten when they vanish", []string{"a b", "a"}, nil, ""},
		{"most of the nodes are forgotten when they vanish", []string{"a b c", "a"}, nil, "b c"},
		{"all nodes are forgotten when they vanish", []string{"a b c", ""}, nil, "a b c"},
		{"nodes are forgotten whatever new nodes come meanwhile", []string{"a b c", "d e f g h i"}, nil, "a b c"},
		{"nodes are forgotten however many nodes slurm.conf names", []string{"a b c X Y Z", "X Y Z"}, nil, "a b c"},
		{"nodes that come back are known again", []string{"a b c", "", "b"}, nil, "a c"},
		{"nodes that do not come back stay forgotten", []string{"a b c", "", "b", "b d e f"}, nil, "a c"},
		{"nodes that were deleted on purpose are not forgotten", []string{"a b c", "a"}, []string{"b", "c"}, ""},
		{"a link that starts knows of nothing", []string{"a"}, nil, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := &Snapshot{}
			for i, text := range tt.lists {
				if i == len(tt.lists)-1 {
					s = s.without(tt.meant, noon)
				}
				list := rest.NodeList{Updated: noon}
				for name := range strings.FieldsSeq(text) {
					state := []string{"IDLE", "DYNAMIC_NORM"}
					if name < "a" {
						state = state[:1]
					}
					list.Nodes = append(list.Nodes, &rest.Node{Name: name, State: state})
				}
				s, _ = s.following(noon.Add(time.Duration(i)*time.Second), list, nil)
				s, _ = s.following(noon.Add(time.Duration(i)*time.Second), rest.NodeList{Unchanged: true}, nil)
			}
			var got []string
			for name := range strings.FieldsSeq("a b c d e f g h i X Y Z") {
				if s.Forgotten(name) {
					got = append(got, name)
				}
			}
			if got := strings.Join(got, " "); got != tt.want {
				t.Errorf("%q are forgotten, want %q", got, tt.want)
			}
		})
	}
}

func TestSnapshotGetsStaleByItself(t *testing.T) {
	s := &Snapshot{Taken: noon, Trust: Fresh, staleAfter: 16 * time.Second}
	if got := s.at(noon.Add(16 * time.Second)); got != s {
		t.Errorf("after its patience the snapshot is %s", got.Trust)
	}
	late := s.at(noon.Add(17 * time.Second))
	if late.Trust != Stale || late.Why == "" || s.Trust != Fresh {
		t.Errorf("a second later it is %s because %q", late.Trust, late.Why)
	}
	if s := NewSnapshot(noon, Fresh, rest.Node{Name: "a"}); s.at(noon.Add(time.Hour)).Trust != Fresh {
		t.Error("a snapshot made by hand gets stale")
	}
}

// TestOnlyFreshSnapshotsMissNodes walks through random answers.
func TestOnlyFreshSnapshotsMissNodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, now := &Snapshot{Trust: Stale}, noon
		for range rapid.IntRange(1, 30).Draw(t, "answers") {
			before := s
			now = now.Add(time.Duration(rapid.IntRange(0, 400).Draw(t, "seconds")) * time.Second)
			var list rest.NodeList
			var err error
			switch rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0:
				err = &rest.Error{Kind: rapid.SampledFrom([]rest.Kind{rest.Unavailable, rest.Malformed}).Draw(t, "error")}
			case 1:
				list.Unchanged = true
			default:
				list = listOf(many(rapid.IntRange(0, 6).Draw(t, "nodes")))
			}
			var changed []string
			s, changed = s.following(now, list, err)
			if err != nil && (s.Trust == Fresh || s.Len() != before.Len() || len(changed) > 0 || !s.Taken.Equal(before.Taken)) {
				t.Fatalf("after %v the snapshot is %s with %d nodes", err, s.Trust, s.Len())
			}
			if s.Trust == Fresh && (s.Len()*2 < before.trusted && now.Sub(before.lostSince) < suspectTimeout) {
				t.Fatalf("a list of %d nodes after one of %d is fresh at once", s.Len(), before.trusted)
			}
			if _, exists := s.Node("none"); exists == node.No && s.Trust != Fresh {
				t.Fatalf("a node is missing in a snapshot that is %s", s.Trust)
			}
			if before.Len() > 0 && err == nil && list.Unchanged && s.Len() != before.Len() {
				t.Fatal("unchanged changed something")
			}
		}
	})
}

func TestFailuresSaySomeNames(t *testing.T) {
	if err := (Failures)(nil).Err(); err != nil {
		t.Errorf("no failure is %v", err)
	}
	err := all([]string{"n10", "n9", "n1", "n2", "n3"}, rest.Absent).Err()
	if !errors.Is(err, rest.Absent) || err.Error() != "n1: absent\nn2: absent\nn3: absent\nand 2 more" {
		t.Errorf("failures are %q", err)
	}
}

func TestPollIntervalAfterFailures(t *testing.T) {
	for name, test := range map[string]struct {
		failures int
		want     time.Duration
	}{
		"an answer is followed by the interval":  {0, 2 * time.Second},
		"a first failure by a second":            {1, time.Second},
		"a fourth failure by eight":              {4, 8 * time.Second},
		"many failures by a quarter of a minute": {1000, 15 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			if got := pollInterval(2*time.Second, test.failures); got != test.want {
				t.Errorf("pause is %s, want %s", got, test.want)
			}
		})
	}
}

func TestWhatASnapshotHasOfADeletedNode(t *testing.T) {
	t.Parallel()
	asked := time.Unix(1000, 0)
	s := NewSnapshot(asked, Fresh, rest.Node{Name: "w-0"}, rest.Node{Name: "w-1"}).without([]string{"w-0", "w-9"}, asked.Add(time.Second))
	again := rest.Node{Name: "w-0"}
	next, _ := s.following(asked.Add(2*time.Second), rest.NodeList{Nodes: []*rest.Node{&again}}, nil)
	for name, got := range map[string][2]bool{
		"before the next list": {s.Deleted("w-0"), true}, "of another node": {s.Deleted("w-1"), false},
		"of a node that is not there": {s.Deleted("w-9"), false}, "after it": {next.Deleted("w-0"), false},
	} {
		if got[0] != got[1] {
			t.Errorf("%s: deleted is %t", name, got[0])
		}
	}
}
