// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"crypto/tls"
	"flag"

	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// Metrics are the flags for the serving of metrics.
type Metrics struct {
	// Address is where; 0 switches them off.
	Address string
	// Secure asks for HTTPS and callers who may read them.
	Secure bool
}

// Bind declares the flags, the address under each of the names.
func (m *Metrics) Bind(fs *flag.FlagSet, address string, names ...string) {
	for _, name := range names {
		fs.StringVar(&m.Address, name, address, "`address` of /metrics; 0 switches it off")
	}
	fs.BoolVar(&m.Secure, "metrics-secure", true,
		"serve /metrics over HTTPS, to callers whose token may get the non-resource URL /metrics")
}

// Options returns the server that the flags describe. HTTP/2 lets one client open streams faster than they can be reset
// (CVE-2023-44487), and is therefore something to ask for.
func (m *Metrics) Options(http2 bool) metricsserver.Options {
	out := metricsserver.Options{BindAddress: m.Address, SecureServing: m.Secure}
	if m.Secure {
		out.FilterProvider = filters.WithAuthenticationAndAuthorization
	}
	if !http2 {
		out.TLSOpts = []func(*tls.Config){HTTP1}
	}
	return out
}

// HTTP1 keeps a server from speaking HTTP/2.
func HTTP1(c *tls.Config) { c.NextProtos = []string{"http/1.1"} }
