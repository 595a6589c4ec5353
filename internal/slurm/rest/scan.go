// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"fmt"
	"io"
	"strconv"
)

const (
	// windowSize is the part of a stream that is held at a time, unless a single string is longer.
	windowSize = 64 << 10
	// maxString is the longest string that is kept, in bytes. What is skipped may be longer: a user can give a job a comment of
	// any length.
	maxString = 1 << 20
	// maxDepth is the deepest nesting that is accepted; Slurm's answers have about ten levels.
	maxDepth = 64
)

// A scanner reads one JSON value from a stream, member by member, through a window over it. Skipping allocates nothing.
// What is skipped is checked as strictly as what is read: when a scanner reaches the end without an error, the stream
// was valid JSON.
//
// Errors stick: after the first one every method returns a zero value, and err has the error. The tokens of
// encoding/json were not used because each string and number of them is an allocation, and 10,000 nodes have two million.
type scanner struct {
	r     io.Reader
	buf   []byte
	pos   int   // next byte in buf
	end   int   // end of the bytes in buf
	read  int64 // bytes taken from r
	limit int64 // bytes that may be taken from r
	depth int
	err   error
	out   []byte // unescaped string
}

// A syntaxError is JSON that is not well-formed or not of the expected type. Anything else in scanner.err came from the
// stream.
type syntaxError struct {
	offset int64
	text   string
}

func (e *syntaxError) Error() string { return fmt.Sprintf("at byte %d: %s", e.offset, e.text) }

func newScanner(r io.Reader, limit int64) *scanner {
	return &scanner{r: r, limit: limit, buf: make([]byte, windowSize)}
}

// fail records a syntax error at the current position, unless there is an error already.
func (s *scanner) fail(text string) {
	if s.err == nil {
		s.err = &syntaxError{s.read - int64(s.end-s.pos), text}
	}
}

// fill reads more of the stream and keeps the bytes from index keep on; it returns by how much they moved to the front,
// and whether there is more than before.
func (s *scanner) fill(keep int) (moved int, more bool) {
	if s.err != nil {
		return 0, false
	}
	if keep > 0 {
		copy(s.buf, s.buf[keep:s.end])
		s.pos -= keep
		s.end -= keep
	}
	if s.end == len(s.buf) {
		if len(s.buf) >= maxString {
			s.err = Bound(fmt.Sprintf("%d KiB in one text", maxString>>10))
			return keep, false
		}
		s.buf = append(s.buf, make([]byte, len(s.buf))...)
	}
	for range 100 {
		n, err := s.r.Read(s.buf[s.end:])
		s.end += n
		s.read += int64(n)
		if s.read > s.limit {
			s.err = Bound(fmt.Sprintf("%d bytes", s.limit))
			return keep, false
		}
		if n > 0 {
			// An error that came with data comes again with the next read.
			return keep, true
		}
		if err == io.EOF {
			return keep, false
		}
		if err != nil {
			s.err = err
			return keep, false
		}
	}
	s.err = io.ErrNoProgress
	return keep, false
}

// peek returns the next byte that is no white space, without taking it; 0 at the end.
func (s *scanner) peek() byte {
	for {
		for s.pos < s.end {
			switch c := s.buf[s.pos]; c {
			case ' ', '\n', '\t', '\r':
				s.pos++
			default:
				return c
			}
		}
		if _, more := s.fill(s.pos); !more {
			return 0
		}
	}
}

// finish checks that nothing but white space follows.
func (s *scanner) finish() {
	if c := s.peek(); c != 0 || s.pos < s.end {
		s.fail("more follows after the end")
	}
}

// open enters an object ('{') or array ('[') and reports whether it has a member. A null counts as empty.
func (s *scanner) open(bracket byte) bool {
	c := s.peek()
	if c == 'n' {
		s.literal("null")
		return false
	}
	if s.err != nil {
		return false
	}
	if c != bracket {
		s.fail("expected '" + string(bracket) + "', found " + strconv.QuoteRune(rune(c)))
		return false
	}
	if s.depth++; s.depth > maxDepth {
		s.fail("nested too deeply")
		return false
	}
	s.pos++
	// ']' and '}' both follow their opening bracket by two in ASCII.
	if s.peek() == bracket+2 {
		s.pos++
		s.depth--
		return false
	}
	return s.err == nil
}

// more goes to the next member of an object or array opened with bracket, or leaves it.
func (s *scanner) more(bracket byte) bool {
	c := s.peek()
	if s.err != nil {
		return false
	}
	switch c {
	case ',':
		s.pos++
		return true
	case bracket + 2:
		s.pos++
		s.depth--
		return false
	}
	s.fail("expected ',' or '" + string(bracket+2) + "', found " + strconv.QuoteRune(rune(c)))
	return false
}

// key returns the key of an object's member; it is valid until the next call.
func (s *scanner) key() []byte {
	key := s.str()
	if s.pos < s.end && s.buf[s.pos] == ':' {
		s.pos++
		return key
	}
	s.out = append(s.out[:0], key...) // the window may move while the colon is looked for
	if s.peek() != ':' {
		s.fail("expected ':'")
		return nil
	}
	s.pos++
	return s.out
}

// literal takes null, true or false.
func (s *scanner) literal(word string) {
	s.peek()
	for s.end-s.pos < len(word) {
		if _, more := s.fill(s.pos); !more {
			s.fail("expected " + word)
			return
		}
	}
	if string(s.buf[s.pos:s.pos+len(word)]) != word {
		s.fail("expected " + word)
		return
	}
	s.pos += len(word)
}

// number returns the text of a number; it is valid until the next call.
func (s *scanner) number() []byte {
	s.peek()
	start := s.pos
	for i := start; ; {
		for i < s.end && (s.buf[i] >= '0' && s.buf[i] <= '9' || s.buf[i] == '-' || s.buf[i] == '+' || s.buf[i] == '.' ||
			s.buf[i] == 'e' || s.buf[i] == 'E') {
			i++
		}
		if i == s.end {
			moved, more := s.fill(start)
			start -= moved
			i -= moved
			if more {
				continue
			}
		}
		if s.err != nil {
			return nil
		}
		if !validNumber(s.buf[start:i]) {
			s.fail("expected a value")
			return nil
		}
		s.pos = i
		return s.buf[start:i]
	}
}

// validNumber reports whether b is a number as RFC 8259 has them.
func validNumber(b []byte) bool {
	digits := func() bool {
		n := 0
		for n < len(b) && b[n] >= '0' && b[n] <= '9' {
			n++
		}
		b = b[n:]
		return n > 0
	}
	if len(b) > 0 && b[0] == '-' {
		b = b[1:]
	}
	if len(b) > 0 && b[0] == '0' {
		b = b[1:]
	} else if !digits() {
		return false
	}
	if len(b) > 0 && b[0] == '.' {
		b = b[1:]
		if !digits() {
			return false
		}
	}
	if len(b) > 0 && (b[0] == 'e' || b[0] == 'E') {
		b = b[1:]
		if len(b) > 0 && (b[0] == '-' || b[0] == '+') {
			b = b[1:]
		}
		if !digits() {
			return false
		}
	}
	return len(b) == 0
}

// skip checks a value and forgets it.
func (s *scanner) skip() {
	switch s.peek() {
	case '{':
		for ok := s.open('{'); ok; ok = s.more('{') {
			s.key()
			s.skip()
		}
	case '[':
		for ok := s.open('['); ok; ok = s.more('[') {
			s.skip()
		}
	case '"':
		s.skipString()
	case 'n':
		s.literal("null")
	case 't':
		s.literal("true")
	case 'f':
		s.literal("false")
	default:
		s.number()
	}
}
