// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestTheTokenInAFileIsTheOneThatIsThereNow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	f := NewFile(path)
	if _, _, err := f.Token(time.Now()); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("without a file: %v", err)
	}
	for _, text := range []string{"first.token", " second.token\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, _, err := f.Token(time.Now()); err != nil || got != strings.TrimSpace(text) {
			t.Errorf("%q, %v", got, err)
		}
	}
	for _, text := range []string{"", " \n", "two tokens", "a\r\nX-Header: b", "tök"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, _, err := f.Token(time.Now()); err == nil || !strings.Contains(err.Error(), path) || text != "" && strings.Contains(err.Error(), text) {
			t.Errorf("%q is taken for %q, %v", text, got, err)
		}
	}
}

func TestAStaticTokenIsNotShown(t *testing.T) {
	s, err := NewStatic("very.secret\n")
	if err != nil {
		t.Fatal(err)
	}
	if got, _, err := s.Token(time.Now()); err != nil || got != "very.secret" {
		t.Errorf("%q, %v", got, err)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if shown := fmt.Sprintf(verb, s); strings.Contains(shown, "secret") {
			t.Errorf("%s shows %s", verb, shown)
		}
	}
}
