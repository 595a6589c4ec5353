// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestOurs(t *testing.T) {
	tests := []struct {
		name, text string
		want       bool
	}{
		{"what we write is ours", OurReason("pod is being deleted"), true},
		{"a reason of ours without words is ours", OurReason(""), true},
		{"the oldest form is ours", "slurm-operator:old", true},
		{"an administrator's reason is not ours", "disk failed", false},
		{"an empty reason is not ours, so that the drain is kept", "", false},
		{"the prefix must stand in front", "not by slurm-operator: x", false},
		{"a reason that starts alike is not ours", "slurm-operators strike", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := (Reason{Text: tt.text}).Ours(); got != tt.want {
				t.Errorf("Ours is %t for %q", got, tt.text)
			}
		})
	}
	if got, want := OurReason("scaled in\n"), "slurm-operator: scaled in"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := (Reason{Text: "slurm-operator: scaled in"}).Plain(); got != "scaled in" {
		t.Errorf("Plain is %q", got)
	}
}

func TestReasonNotation(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	tests := []struct {
		reason Reason
		want   string
	}{
		{Reason{"disk failed", "root", at}, "disk failed [root@2026-01-02T03:04:05]"},
		{Reason{"", "root", at}, "[root@2026-01-02T03:04:05]"},
		{Reason{Text: "disk failed"}, "disk failed"},
		{Reason{Text: "x", SetBy: "root"}, "x [root]"},
		{Reason{}, ""},
	}
	for _, tt := range tests {
		if got := tt.reason.String(); got != tt.want {
			t.Errorf("%+v is written as %q, want %q", tt.reason, got, tt.want)
		}
	}
}

func TestSanitizeReason(t *testing.T) {
	tests := []struct {
		name, text, want string
	}{
		{"a plain text stays", "disk failed, see #3", "disk failed, see #3"},
		{"control characters vanish", "a\x00b\nc\x1b[31m\u0085d", "abc[31md"},
		{"invisible characters vanish", "a\u202eb\u200bc", "abc"},
		{"bytes that are not UTF-8 vanish", "a\xffb", "ab"},
		{"blanks at the ends vanish", " \t a b \n", "a b"},
		{"other scripts stay", "Gerät überhitzt 过热", "Gerät überhitzt 过热"},
		{"a text is cut at 256 runes, not bytes", strings.Repeat("ü", 300), strings.Repeat("ü", 256)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := SanitizeReason(tt.text); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func FuzzReason(f *testing.F) {
	f.Add("disk failed [root@2026-01-02T03:04:05]")
	f.Add("slurm-operator: \x00\xff[@]")
	f.Fuzz(func(t *testing.T, text string) {
		clean := SanitizeReason(text)
		if !utf8.ValidString(clean) || strings.ContainsAny(clean, "\n\r\x00") || utf8.RuneCountInString(clean) > 256 {
			t.Fatalf("%q", clean)
		}
		if again := SanitizeReason(clean); again != clean {
			t.Fatalf("%q became %q", clean, again)
		}
		if r := (Reason{Text: OurReason(text)}); !r.Ours() || r.Plain() != strings.TrimSpace(clean) {
			t.Fatalf("%q is %q", r.Text, r.Plain())
		}
	})
}
