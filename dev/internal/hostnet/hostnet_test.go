// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package hostnet

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const routes = `default via 192.0.2.1 dev eth0 
10.172.1.0/24 via 10.173.0.11 dev lk7dc0fc 
unreachable 10.9.0.0/16 metric 4278198272 
192.0.2.0/24 dev eth0 proto kernel scope link src 192.0.2.2 
local 10.173.0.1 dev lk7dc0fc table local proto kernel scope host src 10.173.0.1 
broadcast 127.255.255.255 dev lo table local proto kernel scope link src 127.0.0.1 
0.0.0.0/1 via 10.8.0.1 dev tun0
`

func TestParseRoutes(t *testing.T) {
	got := fmt.Sprint(parseRoutes(routes))
	want := "[10.172.1.0/24 10.9.0.0/16 192.0.2.0/24 10.173.0.1/32 127.255.255.255/32 0.0.0.0/1]"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func FuzzParseRoutes(f *testing.F) {
	f.Add(routes)
	f.Add("\n \n10/8\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, p := range parseRoutes(text) {
			if !p.IsValid() {
				t.Errorf("an invalid subnet from %q", text)
			}
		}
	})
}
