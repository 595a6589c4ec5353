// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package login

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestExchangesWithAnSftpServer(t *testing.T) {
	for name, tt := range map[string]struct {
		reply, want, refusal string
		kind                 byte
	}{
		"a handle":                  {reply: "\x00\x00\x00\x0a\x66\x00\x00\x00\x01\x00\x00\x00\x01h", kind: sftpHandle, want: "h"},
		"a good end":                {reply: "\x00\x00\x00\x09\x65\x00\x00\x00\x01\x00\x00\x00\x00", kind: sftpStatus},
		"a refusal":                 {reply: "\x00\x00\x00\x0f\x65\x00\x00\x00\x01\x00\x00\x00\x03\x00\x00\x00\x02no", kind: sftpHandle, refusal: `says "no"`},
		"another answer":            {reply: "\x00\x00\x00\x0a\x67\x00\x00\x00\x01\x00\x00\x00\x01h", kind: sftpHandle, refusal: "answers with type 103"},
		"a packet that is too long": {reply: "\x10\x00\x00\x00\x65", kind: sftpStatus, refusal: "bytes"},
		"an end in the middle":      {reply: "\x00\x00\x00\x0a\x66", kind: sftpStatus, refusal: "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			var asked bytes.Buffer
			conversation := &transfer{in: &asked, out: strings.NewReader(tt.reply)}
			got, err := conversation.exchange(conversation.request(sftpClose).text("h"), tt.kind)
			if tt.refusal != "" {
				if err == nil || !strings.Contains(err.Error(), tt.refusal) {
					t.Errorf("error %v, want %q", err, tt.refusal)
				}
				return
			}
			if err != nil || string(got) != tt.want {
				t.Errorf("%q (%v), want %q", got, err, tt.want)
			}
			if diff := cmp.Diff("\x00\x00\x00\x0a\x04\x00\x00\x00\x01\x00\x00\x00\x01h", asked.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func FuzzAnswers(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x09\x65\x00\x00\x00\x01\x00\x00\x00\x00"), byte(sftpStatus))
	f.Fuzz(func(_ *testing.T, reply []byte, kind byte) {
		_, _ = (&transfer{in: io.Discard, out: bytes.NewReader(reply)}).exchange(packet{}, kind)
	})
}
