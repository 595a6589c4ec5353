// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"
)

// soperatorChecks is the name by which Soperator's chart of that name starts its program. In our image it is a link to the manager.
const soperatorChecks = "soperatorchecks"

// standIn keeps a Deployment of that chart ready until the context ends. The manager does all that soperatorchecks does.
func standIn(ctx context.Context, args []string, output io.Writer) error {
	address := probeAddress(args)
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listening for probes: %w", err)
	}
	slog.New(slog.NewJSONHandler(output, nil)).Info("The manager of Coxswain does what soperatorchecks does; this process answers probes alone. "+
		"Uninstall the chart soperatorchecks", "address", listener.Addr().String(), "version", version)
	server := &http.Server{Handler: probes(), ReadHeaderTimeout: readHeaderTimeout}
	stop := context.AfterFunc(ctx, func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = server.Shutdown(end)
	})
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("answering probes: %w", err)
	}
	return nil
}

func probes() http.Handler {
	mux := http.NewServeMux()
	for _, path := range []string{"GET /healthz", "GET /readyz"} {
		mux.HandleFunc(path, func(http.ResponseWriter, *http.Request) {})
	}
	return mux
}

// probeAddress returns where probes are asked for. All other flags, of whatever release, are without meaning.
func probeAddress(args []string) string {
	address := ":8081"
	for i, arg := range args {
		name, value, hasValue := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(arg, "-"), "-"), "=")
		switch {
		case name != "health-probe-bind-address" || !strings.HasPrefix(arg, "-"):
		case hasValue:
			address = value
		case i+1 < len(args):
			address = args[i+1]
		}
	}
	return address
}
