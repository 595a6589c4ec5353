// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// maxWords is how many words a sentence may have. About twenty are the rule; a list inside a sentence takes more.
const maxWords = 45

// sentences are those of a page, without tables, examples, headings, generated parts and the targets of links.
func sentences(text string) []string {
	text, _, _ = strings.Cut(text, begin)
	for _, cut := range []string{"(?ms)^ *```.*?^ *```$", `(?m)^ *\|.*$`, `(?m)^#.*$`, `(?s)<!--.*?-->`} {
		text = regexp.MustCompile(cut).ReplaceAllString(text, "")
	}
	text = regexp.MustCompile(`\]\([^)]*\)`).ReplaceAllString(text, "]")
	var out []string
	for _, paragraph := range regexp.MustCompile(`(?m)\n\s*\n|^\s*[*-] |^\s*\d+\. `).Split(text, -1) {
		flat, start := strings.Join(strings.Fields(paragraph), " "), 0
		for _, end := range regexp.MustCompile("[.!?][)*]* +[A-Z`*\\[(]|$").FindAllStringIndex(flat, -1) {
			stop := min(end[0]+1, len(flat))
			if sentence := strings.TrimSpace(flat[start:stop]); sentence != "" {
				out = append(out, sentence)
			}
			start = stop
		}
	}
	return out
}

func TestSentencesAreShort(t *testing.T) {
	count := 0
	for path := range pages(t) {
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		for _, sentence := range sentences(string(text)) {
			count++
			if words := len(strings.Fields(sentence)); words > maxWords && !strings.HasPrefix(path, "docs/reference/") {
				t.Errorf("%s: a sentence of %d words: %s", path, words, sentence)
			}
		}
	}
	if count < 1000 {
		t.Errorf("only %d sentences were found", count)
	}
}

func TestSentencesOfAPage(t *testing.T) {
	have := sentences("# Head\n\nOne is `a.B`. Two has\na [link](of.md) (and. That). `Three` is.\n* four\n* five\n\n| no | table |\n|---|---|\n\n" +
		"```\nno code\n```\n1. six. Seven\n" + begin + "no more")
	want := []string{"One is `a.B`.", "Two has a [link] (and.", "That).", "`Three` is.", "four", "five", "six.", "Seven"}
	if strings.Join(have, "|") != strings.Join(want, "|") {
		t.Errorf("the sentences are %q, want %q", have, want)
	}
}

// TestPagesUseTheWordsOfSlurmAndKubernetes: a reader who knows both systems has to guess right.
func TestPagesUseTheWordsOfSlurmAndKubernetes(t *testing.T) {
	ours := regexp.MustCompile(`(?i)\b(purse|deeds?|reprieves?|reprieved|remnants?|farewells?|bury|buried|goodbyes?)\b`)
	for path := range pages(t) {
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		if word := ours.FindString(string(text)); word != "" {
			t.Errorf("%s says %q; use Slurm's or Kubernetes' word", path, word)
		}
	}
}
