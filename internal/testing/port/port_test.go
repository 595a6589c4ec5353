// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package port_test

import (
	"net"
	"testing"

	"github.com/coxswain-hpc/coxswain/internal/testing/port"
)

func TestAPortThatIsHeldIsNobodyElses(t *testing.T) {
	address, listen := port.Hold(t)
	if l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", address); err == nil {
		_ = l.Close()
		t.Errorf("somebody else listens on %s", address)
	}
	for range 2 { // a server that starts anew has it again
		l, err := listen.Listen(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		accepted := make(chan error, 1)
		go func() {
			c, err := l.Accept()
			if err == nil {
				err = c.Close()
			}
			accepted <- err
		}()
		c, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		if err := <-accepted; err != nil {
			t.Error(err)
		}
		_, _ = c.Close(), l.Close()
	}
}
