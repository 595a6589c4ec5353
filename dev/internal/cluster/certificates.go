// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/coxswain-hpc/coxswain/dev/internal/pki"
)

// writeCertificates makes what is missing of the keys, certificates and
// kubeconfigs of the control plane.
func (c *Cluster) writeCertificates() error {
	dir := c.PKI()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("making the certificates: %w", err)
	}
	ca, err := pki.OpenAuthority(dir, "ca")
	if err != nil {
		return err
	}
	frontProxy, err := pki.OpenAuthority(dir, "front-proxy-ca")
	if err != nil {
		return err
	}
	// Etcd has its own authority: a certificate of the cluster must not open
	// the way around the apiserver.
	etcdCA, err := pki.OpenAuthority(dir, "etcd-ca")
	if err != nil {
		return err
	}
	if err := pki.WriteSigningKey(dir, "service-accounts"); err != nil {
		return err
	}
	n := c.state.Network
	hosts := []string{
		"localhost", "127.0.0.1", n.APIService().String(), c.state.APIHost().String(),
		"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
	}
	for authority, leaves := range map[*pki.Authority][]pki.Leaf{
		etcdCA: {
			{Name: "etcd", CommonName: "etcd", Hosts: []string{"127.0.0.1"}},
			{Name: "apiserver-etcd-client", CommonName: "kube-apiserver"},
		},
		frontProxy: {{Name: "front-proxy-client", CommonName: "front-proxy-client"}},
		ca: {
			{Name: "apiserver", CommonName: "kube-apiserver", Hosts: hosts},
			{Name: "apiserver-kubelet-client", CommonName: "kube-apiserver-kubelet-client", Organization: "system:masters"},
			{Name: "admin", CommonName: "kubernetes-admin", Organization: "system:masters"},
			{Name: controllerManager, CommonName: "system:kube-controller-manager"},
			{Name: scheduler, CommonName: "system:kube-scheduler"},
			{Name: "kube-proxy", CommonName: "system:kube-proxy"},
			{Name: hostController, CommonName: "localkube:host-controller"},
		},
	} {
		for _, leaf := range leaves {
			if err := authority.Issue(leaf); err != nil {
				return err
			}
		}
	}
	for _, user := range []string{controllerManager, scheduler, "kube-proxy", hostController} {
		if err := c.writeKubeconfig(user); err != nil {
			return err
		}
	}
	return pki.WriteKubeconfig(dir, "localkube-"+c.Name, "admin", c.state.APIServer(), c.Kubeconfig())
}

func (c *Cluster) writeKubeconfig(user string) error {
	return pki.WriteKubeconfig(c.PKI(), "localkube-"+c.Name, user, c.state.APIServer(), filepath.Join(c.PKI(), user+".kubeconfig"))
}

// writeNodeCertificate makes the kubelet's certificate and kubeconfig.
func (c *Cluster) writeNodeCertificate(i int) error {
	ca, err := pki.OpenAuthority(c.PKI(), "ca")
	if err != nil {
		return err
	}
	name := c.state.NodeName(i)
	err = ca.Issue(pki.Leaf{
		Name: name, CommonName: "system:node:" + name, Organization: "system:nodes",
		Hosts: []string{name, c.state.Network.Node(i).String()},
	})
	if err != nil {
		return err
	}
	return c.writeKubeconfig(name)
}
