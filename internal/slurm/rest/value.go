// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"math"
	"strconv"
	"time"
	"unicode/utf8"
)

// A reader reads the values that Slurm's answers are made of. Strings and lists that repeat from node to node are kept
// once.
type reader struct {
	*scanner
	strings map[string]string
	lists   map[string][]string
	joined  []byte
	kept    int // bytes of texts
}

// maxShared bounds how many different strings, and lists, are kept for sharing.
const maxShared = 4096

func newReader(s *scanner) *reader {
	return &reader{scanner: s, strings: map[string]string{}, lists: map[string][]string{}}
}

// bytes is str, with null as an empty string.
func (r *reader) bytes() []byte {
	if r.peek() == 'n' {
		r.literal("null")
		return nil
	}
	b := r.str()
	if !utf8.Valid(b) {
		b = bytes.ToValidUTF8(b, []byte("\uFFFD"))
	}
	return b
}

// text reads a string that is likely to differ from node to node, except that it may be the same as like.
func (r *reader) text(like string) string {
	b := r.bytes()
	if string(b) == like {
		return like
	}
	r.keep(len(b))
	return string(b)
}

// shared reads a string that is likely to be the same for many nodes.
func (r *reader) shared() string { return r.share(r.bytes()) }

func (r *reader) share(b []byte) string {
	if v, ok := r.strings[string(b)]; ok {
		return v
	}
	r.keep(len(b))
	v := string(b)
	if len(r.strings) < maxShared {
		r.strings[v] = v
	}
	return v
}

// list reads a list of strings. Equal lists are one slice, which nobody may change; an empty one is nil.
func (r *reader) list() []string {
	r.joined = r.joined[:0]
	n := 0
	for ok := r.open('['); ok; ok = r.more('[') {
		r.joined = append(r.joined, r.bytes()...)
		r.joined = append(r.joined, 0)
		n++
		if len(r.joined) > maxString {
			r.exceeds("%d KiB in a list of texts", maxString>>10)
		}
	}
	if n == 0 || r.err != nil {
		return nil
	}
	if list, ok := r.lists[string(r.joined)]; ok {
		return list
	}
	if bytes.Count(r.joined, []byte{0}) != n {
		r.fail("a NUL in a list of strings")
		return nil
	}
	const header = 16 // of each string
	r.keep(n*header + len(r.joined))
	list := make([]string, 0, n)
	for b := range bytes.SplitSeq(r.joined[:len(r.joined)-1], []byte{0}) {
		list = append(list, r.share(b))
	}
	if len(r.lists) < maxShared {
		r.lists[string(r.joined)] = list
	}
	return list
}

// A quantity is a number of Slurm: {"set": …, "infinite": …, "number": …}, or a bare number in older versions.
type quantity struct {
	set      bool
	infinite bool
	number   int64
}

// quantity reads one. A null is not set.
func (r *reader) quantity() quantity {
	var q quantity
	switch r.peek() {
	case '{':
		for ok := r.open('{'); ok; ok = r.more('{') {
			switch string(r.key()) {
			case "set":
				q.set = r.bool()
			case "infinite":
				q.infinite = r.bool()
			case "number":
				q.number = r.integer()
			default:
				r.skip()
			}
		}
	case 'n':
		r.literal("null")
	default:
		q.number = r.integer()
		q.set = r.err == nil
	}
	return q
}

// time reads a UNIX time in seconds; not set, infinite and 0 are the zero time.
func (r *reader) time() time.Time {
	q := r.quantity()
	if !q.set || q.infinite || q.number <= 0 {
		return time.Time{}
	}
	return time.Unix(q.number, 0)
}

func (r *reader) bool() bool {
	switch r.peek() {
	case 't':
		r.literal("true")
		return true
	case 'n':
		r.literal("null")
	default:
		r.literal("false")
	}
	return false
}

// integer reads a whole number; a fraction is cut off, null is 0.
func (r *reader) integer() int64 {
	if r.peek() == 'n' {
		r.literal("null")
		return 0
	}
	b := r.number()
	if r.err != nil {
		return 0
	}
	if n, err := strconv.ParseInt(string(b), 10, 64); err == nil {
		return n
	}
	f, err := strconv.ParseFloat(string(b), 64)
	if err != nil || math.Abs(f) > 1<<53 {
		r.fail("a number is out of range")
		return 0
	}
	return int64(f)
}
