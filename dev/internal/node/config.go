// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bytes"
	"embed"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"text/template"

	"github.com/coxswain-hpc/coxswain/dev/internal/pki"
)

// Config holds the values of a node's configuration files.
type Config struct {
	Name string
	// Dir is where the files are written.
	Dir string
	// PauseImage is the image of pod sandboxes.
	PauseImage string
	// CNIPlugins is the directory of the CNI plugins.
	CNIPlugins string
	// KeepOOMScores is set where containers cannot have a lower
	// oom_score_adj than containerd, for want of CAP_SYS_RESOURCE.
	KeepOOMScores bool
	// PKI is the directory with ca.crt, <Name>.crt and <Name>.key and the
	// kubeconfigs <Name>.kubeconfig and kube-proxy.kubeconfig.
	PKI string
	// CgroupRoot is the absolute path of the node's control group.
	CgroupRoot string
	// Host is the host's address, DNS the cluster IP of the DNS service.
	Host, DNS netip.Addr
	// NodePods is the pod subnet of the node, Pods is that of all nodes.
	NodePods, Pods netip.Prefix
}

//go:embed templates
var templates embed.FS

// Files renders a node's configuration files, by name.
func (c Config) Files() (map[string][]byte, error) {
	parsed, err := template.New("").Option("missingkey=error").ParseFS(templates, "templates/*")
	if err != nil {
		return nil, fmt.Errorf("reading the configuration templates: %w", err)
	}
	files := map[string][]byte{}
	for _, name := range []string{"containerd.toml", "kubelet.yaml", "kube-proxy.yaml", "resolv.conf", "10-bridge.conflist"} {
		var b bytes.Buffer
		if err := parsed.ExecuteTemplate(&b, name, c); err != nil {
			return nil, fmt.Errorf("rendering %s: %w", name, err)
		}
		files[name] = b.Bytes()
	}
	return files, nil
}

// Write renders the files into the directory c.Dir; the CNI configuration goes
// to its subdirectory cni.
func (c Config) Write() error {
	files, err := c.Files()
	if err != nil {
		return err
	}
	for name, content := range files {
		dir := c.Dir
		if filepath.Ext(name) == ".conflist" {
			dir = filepath.Join(dir, "cni")
		}
		if err := os.MkdirAll(dir, 0o750); err != nil {
			return fmt.Errorf("writing the configuration of %s: %w", c.Name, err)
		}
		if err := pki.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}
