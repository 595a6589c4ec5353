// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// plain reports whether a byte stands for itself in a string.
func plain(c byte) bool { return c >= ' ' && c != '"' && c != '\\' }

// str returns a string, unescaped and as valid UTF-8; it is valid until the next call.
func (s *scanner) str() []byte {
	if s.peek() != '"' {
		s.fail("expected a string")
		return nil
	}
	start, escaped := s.pos+1, false
	for i := start; ; {
		for i < s.end && plain(s.buf[i]) {
			i++
		}
		if i < s.end {
			switch s.buf[i] {
			case '"':
				s.pos = i + 1
				if escaped {
					s.out = appendUnescaped(s.out[:0], s.buf[start:i])
					return s.out
				}
				return s.buf[start:i]
			case '\\':
				if n := escapeLength(s.buf[i:s.end]); n > 0 {
					i += n
					escaped = true
					continue
				} else if n < 0 {
					s.fail("invalid escape in a string")
					return nil
				}
			default:
				s.fail("control character in a string")
				return nil
			}
		}
		moved, more := s.fill(start - 1)
		if !more {
			s.fail("unexpected end in a string")
			return nil
		}
		start -= moved
		i -= moved
	}
}

// skipString checks a string and forgets it, a window at a time.
func (s *scanner) skipString() {
	s.pos++ // the quotation mark, which the caller has seen
	for {
		for s.pos < s.end && plain(s.buf[s.pos]) {
			s.pos++
		}
		if s.pos < s.end {
			switch s.buf[s.pos] {
			case '"':
				s.pos++
				return
			case '\\':
				if n := escapeLength(s.buf[s.pos:s.end]); n > 0 {
					s.pos += n
					continue
				} else if n < 0 {
					s.fail("invalid escape in a string")
					return
				}
			default:
				s.fail("control character in a string")
				return
			}
		}
		if _, more := s.fill(s.pos); !more {
			s.fail("unexpected end in a string")
			return
		}
	}
}

// escapeLength returns the length of the escape sequence at the start of b, 0 when b ends before it does, -1 when there
// is no such sequence.
func escapeLength(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		for i := 2; i < 6; i++ {
			if i == len(b) {
				return 0
			}
			if !bytes.ContainsRune([]byte("0123456789abcdefABCDEF"), rune(b[i])) {
				return -1
			}
		}
		return 6
	}
	return -1
}

// appendUnescaped appends raw, whose escapes must be well-formed. Lone surrogates become U+FFFD.
func appendUnescaped(out, raw []byte) []byte {
	for len(raw) > 0 {
		n := bytes.IndexByte(raw, '\\')
		if n < 0 {
			return append(out, raw...)
		}
		out = append(out, raw[:n]...)
		raw = raw[n:]
		switch c := raw[1]; c {
		case 'u':
			r := codeUnit(raw)
			raw = raw[6:]
			if utf16.IsSurrogate(r) {
				low := rune(utf8.RuneError)
				if len(raw) >= 6 && raw[0] == '\\' && raw[1] == 'u' {
					low = codeUnit(raw)
				}
				if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
					raw = raw[6:]
				}
			}
			out = utf8.AppendRune(out, r)
			continue
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		default:
			out = append(out, c)
		}
		raw = raw[2:]
	}
	return out
}

// codeUnit returns the UTF-16 code unit of the \uXXXX at the start of b.
func codeUnit(b []byte) rune {
	n, _ := strconv.ParseUint(string(b[2:6]), 16, 16) // escapeLength saw four digits
	return rune(n)
}
