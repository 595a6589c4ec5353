// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// A File gives out the token that is in a file, such as a mounted Secret, which somebody else keeps fresh.
type File struct{ path string }

// NewFile returns an issuer of the token in a file.
func NewFile(path string) *File { return &File{path: path} }

// maxFile is how many bytes a file with a token may have.
const maxFile = 64 << 10

// Token reads the file, each time, as the kubelet replaces it. The expiry of the token is not known.
func (f *File) Token(time.Time) (string, time.Time, error) {
	file, err := os.Open(f.path)
	if err != nil {
		return "", time.Time{}, fmt.Errorf("reading a token: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(file, maxFile))
	if err = errors.Join(err, file.Close()); err != nil {
		return "", time.Time{}, fmt.Errorf("reading a token: %w", err)
	}
	token, err := NewStatic(string(text))
	if err != nil {
		return "", time.Time{}, fmt.Errorf("reading a token from %s: %w", f.path, err)
	}
	return token.token, time.Time{}, nil
}

// A Static gives out the same token for ever.
type Static struct{ token string }

// NewStatic returns an issuer of a token, which may have blanks and line breaks around it.
func NewStatic(text string) (*Static, error) {
	text = strings.TrimSpace(text)
	if text == "" || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return nil, errors.New("it is empty, or no token")
	}
	return &Static{token: text}, nil
}

// Token returns the token.
func (s *Static) Token(time.Time) (string, time.Time, error) { return s.token, time.Time{}, nil }

// String names the issuer without its token.
func (s *Static) String() string { return "a static token" }

// GoString is String, so that %#v shows no token either.
func (s *Static) GoString() string { return s.String() }
