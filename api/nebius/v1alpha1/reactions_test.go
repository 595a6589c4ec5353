// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
)

func TestDrainReaction(t *testing.T) {
	for name, test := range map[string]struct {
		written string
		want    *v1alpha1.DrainSlurmNode
		err     string
	}{
		"nothing written drains nothing":    {written: `{}`},
		"null drains nothing":               {written: `{"drainSlurmNode": null}`},
		"false drains nothing":              {written: `{"drainSlurmNode": false}`},
		"true drains with a reason of ours": {written: `{"drainSlurmNode": true}`, want: &v1alpha1.DrainSlurmNode{}},
		"an empty object drains as well":    {written: `{"drainSlurmNode": {}}`, want: &v1alpha1.DrainSlurmNode{}},
		"an object says how the reason begins": {
			written: `{"drainSlurmNode": {"drainReasonPrefix": "[node_problem]"}}`,
			want:    &v1alpha1.DrainSlurmNode{DrainReasonPrefix: "[node_problem]"},
		},
		"a text is refused": {
			written: `{"drainSlurmNode": "yes"}`,
			err:     `must be an object, true or false, not "yes"`,
		},
		"an unknown field is refused": {
			written: `{"drainSlurmNode": {"prefix": "a"}}`,
			err:     `unknown field "prefix"`,
		},
		"a reason of two lines is refused": {
			written: `{"drainSlurmNode": {"drainReasonPrefix": "a\nb"}}`,
			err:     `drainReasonPrefix: must be one line, found '\n'`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var reactions v1alpha1.Reactions
			if err := json.Unmarshal([]byte(test.written), &reactions); err != nil {
				t.Fatalf("what is written there must not keep the object from being read: %v", err)
			}
			got, err := reactions.DrainSlurmNode.Decode()
			if message := errorText(err); message != test.err {
				t.Fatalf("error is %q, want %q", message, test.err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" && test.err == "" {
				t.Errorf("decoded otherwise (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCommentReactionReadsItsOwnField(t *testing.T) {
	var reactions v1alpha1.Reactions
	if err := json.Unmarshal([]byte(`{"commentSlurmNode": {"commentPrefix": "a"}}`), &reactions); err != nil {
		t.Fatal(err)
	}
	got, err := reactions.CommentSlurmNode.Decode()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&v1alpha1.CommentSlurmNode{CommentPrefix: "a"}, got); diff != "" {
		t.Errorf("decoded otherwise (-want +got):\n%s", diff)
	}
}

func FuzzDrainReaction(f *testing.F) {
	for _, seed := range []string{"true", "false", "null", "{}", `{"drainReasonPrefix":"a"}`, `[]`, " ", "t"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		reaction := &v1alpha1.DrainReaction{}
		reaction.Raw = raw
		got, err := reaction.Decode()
		if err != nil && got != nil {
			t.Errorf("%q is refused and yet means %v: %v", raw, got, err)
		}
		if got != nil && strings.ContainsAny(got.DrainReasonPrefix, "\r\n\x00") {
			t.Errorf("%q is more than one line", got.DrainReasonPrefix)
		}
	})
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestImageReference(t *testing.T) {
	for image, want := range map[v1alpha1.Image]string{
		{}:                              "",
		{Repository: "r.example.org/a"}: "r.example.org/a",
		{Repository: "a", Tag: "1"}:     "a:1",
		{Repository: "", Tag: "1"}:      "",
	} {
		if got := image.Reference(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
