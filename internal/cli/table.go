// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
)

// columnGap is how many blanks stand between two columns.
const columnGap = 3

// colour is an escape sequence of a terminal; empty for none.
type colour string

// The colours that are used, by ECMA-48, SGR.
const (
	plain  colour = ""
	red    colour = "\x1b[31m"
	green  colour = "\x1b[32m"
	yellow colour = "\x1b[33m"
	reset  colour = "\x1b[0m"
)

// cell is a text in a table.
type cell struct {
	text   string
	colour colour
}

// table is lines of cells under a header, or without one.
type table struct {
	header []string
	rows   [][]cell
}

// write writes the table with its columns aligned, without blanks at the end of a line.
func (t table) write(w io.Writer, coloured bool) error {
	lines := make([][]cell, 0, len(t.rows)+1)
	if t.header != nil {
		header := make([]cell, 0, len(t.header))
		for _, title := range t.header {
			header = append(header, cell{text: title})
		}
		lines = append(lines, header)
	}
	lines = append(lines, t.rows...)
	widths := map[int]int{}
	for _, line := range lines {
		for i, c := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(c.text))
		}
	}
	var out strings.Builder
	for _, line := range lines {
		var text strings.Builder
		pending := 0 // blanks that are due before the next text
		for i, c := range line {
			if c.text != "" {
				text.WriteString(strings.Repeat(" ", pending))
				pending = 0
				text.WriteString(painted(c, coloured))
			}
			pending += widths[i] - utf8.RuneCountInString(c.text) + columnGap
		}
		out.WriteString(text.String() + "\n")
	}
	_, err := io.WriteString(w, out.String())
	if err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	return nil
}

func painted(c cell, coloured bool) string {
	if !coloured || c.colour == plain {
		return c.text
	}
	return string(c.colour) + c.text + string(reset)
}

// age returns how long ago a time is, as kubectl writes it; empty for none.
func age(since *metav1.Time, now time.Time) string {
	if since.IsZero() {
		return ""
	}
	return duration.HumanDuration(now.Sub(since.Time))
}

// oneLine returns a message without line breaks and control characters, which would break a table, move the cursor of a terminal or do
// worse.
func oneLine(text string) string {
	return strings.Join(strings.FieldsFunc(text, unicode.IsControl), " ")
}

// harmless returns a text of any number of lines without other control characters.
func harmless(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}
