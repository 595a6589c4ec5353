// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"io"
	"strconv"
	"time"
	"unicode/utf8"
)

// A writer writes JSON as slurmrestd does: two blanks of indentation, "\/" for a slash.
type writer struct {
	b       []byte
	depth   int
	empty   bool // nothing is written in the current object or list
	compact bool
	// out, when it is set, takes what is written whenever the buffer is large.
	out io.Writer
}

// flush hands on what is written.
func (w *writer) flush() {
	if w.out != nil {
		_, _ = w.out.Write(w.b) // a client that is gone has nothing to complain about
		w.b = w.b[:0]
	}
}

// member starts a member of the current object, or of the current list when key is empty.
func (w *writer) member(key string) {
	if !w.empty {
		w.b = append(w.b, ',')
	}
	w.empty = false
	w.line()
	if key != "" {
		w.quote(key)
		w.b = append(w.b, ':')
		if !w.compact {
			w.b = append(w.b, ' ')
		}
	}
}

func (w *writer) line() {
	if w.compact || w.depth == 0 {
		return
	}
	w.b = append(w.b, '\n')
	for range w.depth {
		w.b = append(w.b, ' ', ' ')
	}
}

func (w *writer) open(key string, bracket byte) {
	if w.depth > 0 {
		w.member(key)
	}
	w.b = append(w.b, bracket)
	w.depth++
	w.empty = true
}

func (w *writer) close(bracket byte) {
	w.depth--
	if !w.empty {
		w.line()
		if w.depth == 0 && !w.compact {
			w.b = append(w.b, '\n')
		}
	}
	w.b = append(w.b, bracket)
	w.empty = false
}

func (w *writer) object(key string, fields func()) {
	w.open(key, '{')
	fields()
	w.close('}')
}

func (w *writer) list(key string, entries func()) {
	w.open(key, '[')
	entries()
	w.close(']')
}

func (w *writer) text(key, value string) {
	w.member(key)
	w.quote(value)
}

func (w *writer) texts(key string, values []string) {
	w.list(key, func() {
		for _, v := range values {
			w.text("", v)
		}
	})
}

func (w *writer) int(key string, value int64) {
	w.member(key)
	w.b = strconv.AppendInt(w.b, value, 10)
}

func (w *writer) bool(key string, value bool) {
	w.member(key)
	w.b = strconv.AppendBool(w.b, value)
}

// number writes a number with flags.
func (w *writer) number(key string, set, infinite bool, value int64) {
	w.object(key, func() {
		w.bool("set", set)
		w.bool("infinite", infinite)
		w.int("number", value)
	})
}

// time writes a UNIX time; the zero time is a set 0, as Slurm has it.
func (w *writer) time(key string, t time.Time) {
	var seconds int64
	if !t.IsZero() {
		seconds = t.Unix()
	}
	w.number(key, true, false, seconds)
}

func (w *writer) quote(value string) {
	const hex = "0123456789abcdef"
	w.b = append(w.b, '"')
	for _, r := range value {
		switch {
		case r == '"' || r == '\\' || r == '/':
			w.b = append(w.b, '\\', byte(r))
		case r == '\n':
			w.b = append(w.b, '\\', 'n')
		case r < ' ':
			w.b = append(w.b, '\\', 'u', '0', '0', hex[r>>4], hex[r&15])
		default:
			w.b = utf8.AppendRune(w.b, r)
		}
	}
	w.b = append(w.b, '"')
}
