// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package realslurm

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
)

// StartRest starts a slurmrestd and returns a transport to it, whatever the host of an URL is. It listens at the socket name.sock in the box's
// directory, and /run/name.pid in the box has its process. plugins are those of its option -s, and environment are variables as NAME=value.
func (b *Box) StartRest(name, plugins string, environment ...string) http.RoundTripper {
	b.t.Helper()
	socket := name + ".sock"
	b.start(name, fmt.Sprintf("%s exec setpriv --reuid 65534 --regid 65534 --clear-groups slurmrestd -a rest_auth/jwt -s %s unix:/mnt/%s",
		strings.Join(append(environment, "SLURM_JWT=daemon"), " "), plugins, socket))
	b.Wait(name, func() bool {
		_, err := os.Stat(b.Path(socket))
		return err == nil
	})
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", b.Path(socket))
	}}
	b.t.Cleanup(transport.CloseIdleConnections)
	return transport
}
