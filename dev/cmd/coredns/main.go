// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Command coredns is CoreDNS with the plugins that localkube's Corefile uses.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/metrics"
	_ "github.com/coredns/coredns/plugin/ready"
	_ "github.com/coredns/coredns/plugin/reload"
	_ "github.com/coredns/coredns/plugin/template"
)

func main() {
	// The order of the plugin chain; CoreDNS generates this list at build time. What kubernetes does not answer reaches template.
	dnsserver.Directives = []string{"reload", "health", "ready", "prometheus", "errors", "cache", "kubernetes", "template"}
	coremain.Run()
}
