// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"errors"
	"fmt"
	"iter"
	"strings"
)

// Parse reads a text that a user wrote, as Slurm would: comments, quotes, backslashes, continued lines, include. Lines
// that cannot be read are left out of the document and reported; there is always a document. A scalar that stands twice
// has its last value, as in Slurm; a set that stands twice is united. Comments behind a value are dropped.
func Parse(file File, text string) (*Document, []Problem) {
	d := New(file)
	var problems []Problem
	for line := range logicalLines(text) {
		if p := d.parseLine(line); p != nil {
			p.Line = line.number
			problems = append(problems, *p)
		}
	}
	return d, problems
}

// ParseOptions reads Key=Value pairs such as users give for a partition: MaxTime=UNLIMITED State=UP. A line break is an
// error.
func ParseOptions(text string) ([]Option, error) {
	var options []Option
	for line := range logicalLines(text) {
		if line.number > 1 {
			return nil, errors.New("the options stand on more than one line")
		}
		pairs, p := parsePairs(line)
		if p != nil {
			return nil, *p
		}
		options = pairs
	}
	return options, nil
}

// logicalLine is a line as Slurm's parser sees it: joined with those that continue it, without comment.
type logicalLine struct {
	number int
	text   string
	// comment is what followed the first comment sign.
	comment string
	// commented is true if there was one.
	commented bool
}

// logicalLines cuts text as Slurm does: the comment goes first, then a backslash at the end joins the next line. Lines
// come with their backslashes still in.
func logicalLines(text string) iter.Seq[logicalLine] {
	return func(yield func(logicalLine) bool) {
		number := 0
		var current logicalLine
		open := false
		for raw := range strings.Lines(text) {
			number++
			if !open {
				current = logicalLine{number: number}
			}
			raw = strings.TrimRight(raw, "\r\n")
			if i := commentSign(raw); i >= 0 {
				current.comment, current.commented = raw[i+1:], true
				raw = raw[:i]
			}
			var piece string
			if piece, open = continued(raw); open {
				current.text += piece
				continue
			}
			current.text += raw
			if !yield(current) {
				return
			}
		}
		if open {
			yield(current)
		}
	}
}

// commentSign is the place of the first '#' that has an even number of backslashes before it; -1 if there is none.
func commentSign(s string) int {
	escaped := false
	for i := range len(s) {
		switch {
		case escaped:
			escaped = false
		case s[i] == '\\':
			escaped = true
		case s[i] == '#':
			return i
		}
	}
	return -1
}

// continued removes the last backslash of a line that ends in an odd number of them, blanks aside.
func continued(s string) (string, bool) {
	trimmed := strings.TrimRight(s, blanks)
	n := len(trimmed) - len(strings.TrimRight(trimmed, `\`))
	if n%2 == 0 {
		return s, false
	}
	return trimmed[:len(trimmed)-1], true
}

// parseLine adds one line to the document.
func (d *Document) parseLine(line logicalLine) *Problem {
	if strings.Trim(line.text, blanks) == "" {
		d.parseComment(line)
		return nil
	}
	if file, ok := parseInclude(line.text); ok {
		if err := checkInclude(file); err != nil {
			return &Problem{Key: includeKey, Message: err.Error()}
		}
		d.add(Entry{Key: includeKey, Value: file, Line: line.number})
		return nil
	}
	pairs, p := parsePairs(line)
	if p != nil {
		return p
	}
	if len(pairs) == 0 { // nothing but blanks and backslashes
		d.parseComment(line)
		return nil
	}
	first, options := pairs[0], pairs[1:]
	switch t := d.file.trait(first.Key); {
	case t.kind == Include:
		return &Problem{Key: first.Key, Message: "a file is included by include FILE, without an equals sign"}
	case len(options) > 0 && !t.options:
		return &Problem{Key: first.Key, Message: "there is more text behind its value; put every key on a line of its own, and quotes around a value with blanks"}
	case t.kind == Set:
		if err := checkItems(first.Value); err != nil {
			return &Problem{Key: first.Key, Message: err.Error()}
		}
	}
	if len(options) == 0 {
		options = nil
	}
	d.add(Entry{Key: first.Key, Value: first.Value, Options: options, Line: line.number})
	return nil
}

// parseComment keeps a comment that has its own line and can be written again. The bare '#' before a banner belongs
// to the banner.
func (d *Document) parseComment(line logicalLine) {
	text := strings.TrimSpace(line.comment)
	if text == "" || checkText(text) != nil {
		return
	}
	if name, ok := strings.CutPrefix(text, "## "); ok && !strings.HasPrefix(line.comment, " ") {
		if name, ok = strings.CutSuffix(name, " ###"); ok && strings.TrimSpace(name) != "" {
			d.Section(name)
			return
		}
	}
	d.Comment(text)
}

// parseInclude recognises a line "include FILE".
func parseInclude(text string) (file string, ok bool) {
	text = strings.Trim(unescape(text), blanks)
	if len(text) <= len(includeKey) || !strings.EqualFold(text[:len(includeKey)], includeKey) {
		return "", false
	}
	rest := text[len(includeKey):]
	file = strings.TrimLeft(rest, blanks)
	return file, len(file) < len(rest) && file[0] != '='
}

// unescape takes away the backslashes that make the next character literal. Slurm does so before it looks for quotes.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' {
			i++
		}
		if i < len(s) {
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

// parsePairs reads the Key=Value pairs of a line, at least one.
func parsePairs(line logicalLine) ([]Option, *Problem) {
	rest := unescape(line.text)
	if err := checkText(rest); err != nil {
		return nil, &Problem{Message: err.Error()}
	}
	var pairs []Option
	for rest = strings.TrimLeft(rest, blanks); rest != ""; rest = strings.TrimLeft(rest, blanks) {
		key, tail, err := parseKey(rest)
		if err != nil {
			return nil, strayText(pairs, rest, err)
		}
		value, tail, err := parseValue(tail)
		if err != nil {
			message := err.Error()
			if line.commented {
				message += `; '#' starts a comment inside quotes too, write \# instead`
			}
			return nil, &Problem{Key: key, Message: message}
		}
		pairs = append(pairs, Option{Key: key, Value: value})
		rest = tail
	}
	return pairs, nil
}

// strayText words the problem of text that is not Key=Value. Text behind a value may be the rest of a password.
func strayText(pairs []Option, rest string, err error) *Problem {
	if len(pairs) == 0 {
		return &Problem{Message: fmt.Sprintf("%.80q: %v", strings.TrimRight(rest, blanks), err)}
	}
	last := pairs[len(pairs)-1].Key
	return &Problem{Key: pairs[0].Key, Message: fmt.Sprintf("the text behind the value of %s is not Key=Value; "+
		"a value with blanks needs quotes around all of it", last)}
}

// parseKey reads a key and the equals sign behind it.
func parseKey(s string) (key, rest string, err error) {
	n := 0
	for n < len(s) && isKeyByte(s[n]) {
		n++
	}
	rest = strings.TrimLeft(s[n:], blanks)
	if n > 0 && len(rest) > 1 && strings.IndexByte("+-*/", rest[0]) >= 0 && rest[1] == '=' {
		return "", "", fmt.Errorf("the operator %s is not supported, only =", rest[:2])
	}
	if n == 0 || rest == "" || rest[0] != '=' {
		return "", "", errors.New("this is not Key=Value")
	}
	return s[:n], rest[1:], nil
}

// parseValue reads a value and what follows it.
func parseValue(s string) (value, rest string, err error) {
	s = strings.TrimLeft(s, blanks)
	if s == "" {
		return "", "", errors.New(`it has no value; write "" for an empty one`)
	}
	if s[0] != '"' {
		if n := strings.IndexAny(s, blanks); n >= 0 {
			return s[:n], s[n:], nil
		}
		return s, "", nil
	}
	value, rest, closed := strings.Cut(s[1:], `"`)
	switch {
	case !closed:
		return "", "", errors.New("the quote is not closed")
	case rest != "" && !strings.ContainsAny(rest[:1], blanks):
		return "", "", errors.New("there is text behind the closing quote; quotes go around all of a value")
	}
	return value, rest, nil
}
