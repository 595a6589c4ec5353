// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"text/template"

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

// waitForDNS waits until the cluster's DNS answers.
func (c *Cluster) waitForDNS(ctx context.Context) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	err = c.poll(ctx, "CoreDNS", "", addonTimeout, func(ctx context.Context) error {
		var deployment struct {
			Status struct {
				AvailableReplicas int `json:"availableReplicas"`
			} `json:"status"`
		}
		if err := client.Get(ctx, "/apis/apps/v1/namespaces/kube-system/deployments/coredns", &deployment); err != nil {
			return err
		}
		if deployment.Status.AvailableReplicas == 0 {
			return errors.New("no replica is available (see \"localkube kubectl -n kube-system describe pods\")")
		}
		return nil
	})
	if err != nil {
		return err
	}
	c.progress.Step("CoreDNS ready")
	return nil
}
