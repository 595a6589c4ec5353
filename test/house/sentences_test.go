// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package house

import (
	"go/parser"
	"go/token"
	"regexp"
	"strings"
	"testing"
)

// maxSentence is how many words a sentence of a comment may have.
const maxSentence = 35

var (
	// sentenceEnd is where a sentence ends: many begin with a name in lower case, such as slurmd.
	sentenceEnd = regexp.MustCompile(`[.:;!?]["’)]?(\s+|$)`)
	// paragraphEnd is where a paragraph or an item of a list ends.
	paragraphEnd = regexp.MustCompile(`\n[ \t]*(\n|- |\d+\. )`)
	marker       = regexp.MustCompile(`\n\+[^\n]*`)
)

// longSentences returns the sentences of a comment that have too many words. Code, which is indented, has none, nor have the markers
// of controller-gen.
func longSentences(comment string) (long []string) {
	for _, paragraph := range paragraphEnd.Split(marker.ReplaceAllString("\n"+comment, ""), -1) {
		if strings.HasPrefix(paragraph, "\t") {
			continue
		}
		for _, sentence := range sentenceEnd.Split(strings.TrimSpace(paragraph), -1) {
			if words := strings.Fields(sentence); len(words) > maxSentence {
				long = append(long, strings.Join(words, " "))
			}
		}
	}
	return long
}

func TestALongSentenceIsFound(t *testing.T) {
	words := strings.Repeat("word ", maxSentence)
	for _, test := range []struct {
		name, comment string
		long          int
	}{
		{"a sentence may have as many words as that", words + ".", 0},
		{"one more is too many", words + "more.", 1},
		{"a line break ends none", words + "\nmore.", 1},
		{"a full stop does, whatever follows", words + ". slurmd is more.", 0},
		{"so does an empty line", words + "\n\nmore.", 0},
		{"and the next item of a list", "  - " + words + "\n  - more.", 0},
		{"an item may be too long, too", "A list:\n\n  - " + words + "\n    more", 1},
		{"a marker is not read", words + "\n+kubebuilder:object:root=true", 0},
		{"code is not read", "Code:\n\n\t" + words + words, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			if long := longSentences(test.comment); len(long) != test.long {
				t.Errorf("%d long sentences, want %d: %q", len(long), test.long, long)
			}
		})
	}
}

// A sentence that does not fit into the head of whoever reads it is two.
func TestSentencesAreShort(t *testing.T) {
	for path, text := range written(t) {
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, path, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, group := range f.Comments {
			for _, long := range longSentences(group.Text()) {
				t.Errorf("%s: a sentence of more than %d words: %s", fset.Position(group.Pos()), maxSentence, long)
			}
		}
	}
}
