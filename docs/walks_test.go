// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestTheWalksAreAsLongAsTheySay: whoever makes one longer sees it. That the files exist is tested with those of all pages.
func TestTheWalksAreAsLongAsTheySay(t *testing.T) {
	data, err := os.ReadFile("contributors/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, walks, _ := strings.Cut(string(data), "## Three walks\n")
	walks, _, _ = strings.Cut(walks, "\n## ")
	said, row := regexp.MustCompile(`hrough (\d+) files:`), regexp.MustCompile("(?m)^\\| `(internal/[^`]+)` \\|")
	told := 0
	for walk := range strings.SplitSeq(walks, "\n### ") {
		number := said.FindStringSubmatch(walk)
		if number == nil {
			continue
		}
		told++
		seen := map[string]bool{}
		for _, file := range row.FindAllStringSubmatch(walk, -1) {
			seen[file[1]] = true
			if _, err := os.Stat("../" + file[1]); err != nil {
				t.Error(err)
			}
		}
		if strconv.Itoa(len(seen)) != number[1] {
			t.Errorf("the walk says that it has %s files, and names %d:\n%s", number[1], len(seen), walk)
		}
	}
	if told != 3 {
		t.Errorf("%d walks tell how long they are", told)
	}
}
