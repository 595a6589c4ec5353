// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"strings"
	"testing"
)

func TestSeekLines(t *testing.T) {
	long := strings.Repeat("x", 100<<10)
	for name, test := range map[string]struct {
		log  string
		n    int
		want string
	}{
		"the last two lines":               {"1\n2\n3\n", 2, "2\n3\n"},
		"an unfinished line counts":        {"1\n2\n3", 2, "2\n3"},
		"more lines than there are":        {"1\n2\n", 9, "1\n2\n"},
		"an empty log":                     {"", 9, ""},
		"lines longer than what is read":   {"1\n" + long + "\n3\n", 2, long + "\n3\n"},
		"a newline at the edge of reading": {"1\n" + strings.Repeat("x", 64<<10-1) + "\n", 1, strings.Repeat("x", 64<<10-1) + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			r := strings.NewReader(test.log)
			if err := seekLines(r, test.n); err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(r)
			if err != nil || string(got) != test.want {
				t.Errorf("got %.80q (%d bytes), want %.80q (%d bytes)", got, len(got), test.want, len(test.want))
			}
		})
	}
}
