// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"bytes"
	"testing"
	"time"
)

func TestWithoutTerminal(t *testing.T) {
	var b bytes.Buffer
	p := newPrinter(&b, false, time.Now())
	p.Doing("waiting")
	p.Step("done %d", 1)
	if got := b.String(); got != "[   0.0s] done 1\n" {
		t.Errorf("printed %q", got)
	}
	b.Reset()
	p = newPrinter(&b, false, time.Now().Add(-20*time.Second))
	p.Doing("waiting")
	p.Doing("waiting")
	if got := b.String(); got != "[  20.0s] waiting\n" {
		t.Errorf("printed %q", got)
	}
}

func TestOnTerminalTheTransientLineIsReplaced(t *testing.T) {
	var b bytes.Buffer
	p := newPrinter(&b, true, time.Now())
	p.Doing("waiting")
	p.Doing("waiting")
	p.Step("done")
	if got := b.String(); got != "[   0.0s] waiting\r\x1b[K[   0.0s] waiting\r\x1b[K[   0.0s] done\n" {
		t.Errorf("printed %q", got)
	}
}
