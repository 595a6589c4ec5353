// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"net"
	"net/netip"
	"text/template"
	"time"

	"github.com/coxswain-hpc/coxswain/dev/internal/binaries"
)

var (
	//go:embed manifests/host-controller.yaml
	hostControllerManifest []byte
	//go:embed manifests/coredns.yaml
	coreDNSManifest string
)

// applyAddons applies what makes the cluster whole: storage and DNS.
func (c *Cluster) applyAddons(ctx context.Context) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	coreDNS, err := renderCoreDNS(c.state.Network.DNS().String())
	if err != nil {
		return err
	}
	for _, manifest := range [][]byte{hostControllerManifest, coreDNS} {
		if err := client.Apply(ctx, manifest); err != nil {
			return err
		}
	}
	return nil
}

func renderCoreDNS(dns string) ([]byte, error) {
	t, err := template.New("coredns").Parse(coreDNSManifest)
	if err != nil {
		return nil, fmt.Errorf("reading the manifest of CoreDNS: %w", err)
	}
	var b bytes.Buffer
	if err := t.Execute(&b, map[string]string{"DNS": dns, "CoreDNSImage": binaries.CoreDNSImage}); err != nil {
		return nil, fmt.Errorf("rendering the manifest of CoreDNS: %w", err)
	}
	return b.Bytes(), nil
}

// waitForDNS waits until the cluster's DNS answers. Asked from the host, it
// proves the way through routes, kube-proxy and CoreDNS to the apiserver.
func (c *Cluster) waitForDNS(ctx context.Context) error {
	server := netip.AddrPortFrom(c.state.Network.DNS(), 53).String()
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", server)
	}}
	err := c.poll(ctx, "CoreDNS", addonTimeout, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		// The final dot keeps search domains of the host out of it.
		if _, err := resolver.LookupHost(ctx, "kubernetes.default.svc.cluster.local."); err != nil {
			return fmt.Errorf("%w (see \"localkube kubectl -n kube-system describe pods\")", err)
		}
		return nil
	}, c.expected()...)
	if err != nil {
		return err
	}
	c.progress.Step("CoreDNS ready")
	return nil
}
