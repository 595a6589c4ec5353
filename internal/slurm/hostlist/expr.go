// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package hostlist

import (
	"fmt"
	"iter"
	"math"
	"strconv"
	"strings"
)

// maxDigits bounds the numbers inside brackets so that they fit into 64 bits.
const maxDigits = 18

// Expr is a parsed host list expression. Its size is that of the text, however many names it stands for. The
// zero value is the empty list.
type Expr struct {
	terms []term
}

// term is one comma-separated part: pieces of text, each followed by a bracket, as in rack[1-2]n[01-10].
type term struct {
	parts []part
}

// part is a piece of text and the bracket behind it. A plain name, and text behind the last bracket, has no ranges.
type part struct {
	text   string
	ranges []span
}

// span is one range in a bracket: lo to hi, both included, written with at least width digits.
type span struct {
	lo, hi uint64
	width  int
}

// Parse reads an expression: names and bracket expressions separated by commas or blanks. Like Slurm it skips empty
// parts ("a,,b"). It refuses what cannot be the name of a node (see CheckName) and ranges that count down; the error
// names the part. It does not expand anything.
func Parse(s string) (Expr, error) {
	var e Expr
	for s != "" {
		raw, rest, err := cut(s)
		if err != nil {
			return Expr{}, err
		}
		s = rest
		if raw == "" {
			continue
		}
		t, err := parseTerm(raw)
		if err != nil {
			return Expr{}, fmt.Errorf("host list part %.80q: %w", raw, err)
		}
		e.terms = append(e.terms, t)
	}
	return e, nil
}

// cut takes the first part of a list, up to a separator outside brackets.
func cut(s string) (part, rest string, err error) {
	open := false
	for i := range len(s) {
		switch c := s[i]; {
		case c == '[' && open:
			return "", "", fmt.Errorf("host list %.80q: '[' inside brackets", s)
		case c == '[':
			open = true
		case c == ']':
			open = false
		case !open && (c == ',' || c == ' ' || c == '\t' || c == '\n' || c == '\r'):
			return s[:i], s[i+1:], nil
		}
	}
	if open {
		return "", "", fmt.Errorf("host list %.80q: '[' is not closed", s)
	}
	return s, "", nil
}

func parseTerm(raw string) (term, error) {
	if !strings.ContainsAny(raw, "[]") {
		return term{parts: []part{{text: raw}}}, CheckName(raw)
	}
	var t term
	longest := 0
	for raw != "" {
		text, inner, bracketed := strings.Cut(raw, "[")
		if err := checkCharacters(text); err != nil {
			return term{}, err
		}
		longest += len(text)
		if !bracketed {
			t.parts = append(t.parts, part{text: text})
			break
		}
		inside, rest, _ := strings.Cut(inner, "]")
		if len(t.parts) == 0 && text != "" && (text[0] == '-' || text[0] == '.') {
			return term{}, fmt.Errorf("a host name cannot start with %q", text[0])
		}
		spans, err := parseSpans(inside)
		if err != nil {
			return term{}, err
		}
		t.parts = append(t.parts, part{text: text, ranges: spans})
		longest += widest(spans)
		raw = rest
	}
	if longest > maxName {
		return term{}, fmt.Errorf("its names are longer than %d characters", maxName)
	}
	return t, nil
}

func parseSpans(s string) ([]span, error) {
	spans := make([]span, 0, strings.Count(s, ",")+1)
	for one := range strings.SplitSeq(s, ",") {
		first, last, isRange := strings.Cut(one, "-")
		if !isRange {
			last = first
		}
		lo, err := parseNumber(first, one)
		if err != nil {
			return nil, err
		}
		hi, err := parseNumber(last, one)
		if err != nil {
			return nil, err
		}
		if hi < lo {
			return nil, fmt.Errorf("range %q counts down", one)
		}
		spans = append(spans, span{lo: lo, hi: hi, width: len(first)})
	}
	return spans, nil
}

func parseNumber(s, in string) (uint64, error) {
	if s == "" || digits(s) != len(s) {
		return 0, fmt.Errorf("range %.40q is not a number or a pair of numbers", in)
	}
	if len(s) > maxDigits {
		return 0, fmt.Errorf("range %.40q has more than %d digits", in, maxDigits)
	}
	return strconv.ParseUint(s, 10, 64)
}

// widest is the number of digits of the longest number in spans.
func widest(spans []span) int {
	n := 0
	for _, s := range spans {
		n = max(n, s.width, len(strconv.FormatUint(s.hi, 10)))
	}
	return n
}

// Len is the number of names that All yields, repeated ones included; math.MaxInt if it is larger than that.
func (e Expr) Len() int {
	total := uint64(0)
	for _, t := range e.terms {
		total = saturate(total, t.size(), func(a, b uint64) uint64 { return a + b })
	}
	return int(min(total, math.MaxInt))
}

func (t term) size() uint64 {
	size := uint64(1)
	for _, p := range t.parts {
		n := uint64(0)
		for _, r := range p.ranges {
			n = saturate(n, r.hi-r.lo+1, func(a, b uint64) uint64 { return a + b })
		}
		if len(p.ranges) > 0 {
			size = saturate(size, n, func(a, b uint64) uint64 { return a * b })
		}
	}
	return size
}

// saturate applies op to two numbers below 2^63 and stays at math.MaxInt where the result would pass it.
func saturate(a, b uint64, op func(a, b uint64) uint64) uint64 {
	if a != 0 && b > math.MaxInt/a || a > math.MaxInt-b {
		return math.MaxInt
	}
	return op(a, b)
}

// All yields the names in the order of the expression, the leftmost bracket counting slowest. Names that the expression has twice come
// twice, as with `scontrol show hostnames`.
func (e Expr) All() iter.Seq[string] {
	return func(yield func(string) bool) {
		prefix := make([]byte, 0, maxName+maxDigits)
		for _, t := range e.terms {
			if !t.all(prefix, yield) {
				return
			}
		}
	}
}

// all yields prefix followed by every name of t; false means the consumer has had enough.
func (t term) all(prefix []byte, yield func(string) bool) bool {
	if len(t.parts) == 0 {
		return yield(string(prefix))
	}
	p, rest := t.parts[0], term{parts: t.parts[1:]}
	prefix = append(prefix, p.text...)
	if len(p.ranges) == 0 {
		return rest.all(prefix, yield)
	}
	for _, r := range p.ranges {
		for n := r.lo; n <= r.hi; n++ {
			if !rest.all(appendNumber(prefix, n, r.width), yield) {
				return false
			}
		}
	}
	return true
}

func appendNumber(b []byte, n uint64, width int) []byte {
	var text [20]byte
	number := strconv.AppendUint(text[:0], n, 10)
	for range width - len(number) {
		b = append(b, '0')
	}
	return append(b, number...)
}

// Expand parses s and returns its names in the order of All. If there are more than limit it returns an error with their number,
// without having made them.
func Expand(s string, limit int) ([]string, error) {
	e, err := parseWithin(s, limit)
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, e.Len())
	for name := range e.All() {
		names = append(names, name)
	}
	return names, nil
}

// parseWithin is Parse, refusing expressions of more than limit names.
func parseWithin(s string, limit int) (Expr, error) {
	e, err := Parse(s)
	if err != nil {
		return Expr{}, err
	}
	if n := e.Len(); n > limit {
		return Expr{}, fmt.Errorf("expanding host list %.80q: it stands for %d names, the limit is %d", s, n, limit)
	}
	return e, nil
}
