// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
)

const kubeconfigFormat = `apiVersion: v1
kind: Config
current-context: %[1]s
clusters:
- name: %[1]s
  cluster: {server: %[2]q, certificate-authority-data: %[3]s}
users:
- name: %[1]s-%[4]s
  user: {client-certificate-data: %[5]s, client-key-data: %[6]s}
contexts:
- name: %[1]s
  context: {cluster: %[1]s, user: %[1]s-%[4]s}
`

// WriteKubeconfig writes a kubeconfig for the leaf certificate user in dir,
// issued by the authority "ca", unless it is there with the same content.
func WriteKubeconfig(dir, cluster, user, server, out string) error {
	var encoded [3]string
	for i, file := range []string{"ca.crt", user + ".crt", user + ".key"} {
		b, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			return fmt.Errorf("writing the kubeconfig of %s: %w", user, err)
		}
		encoded[i] = base64.StdEncoding.EncodeToString(b)
	}
	content := fmt.Sprintf(kubeconfigFormat, cluster, server, encoded[0], user, encoded[1], encoded[2])
	if old, err := os.ReadFile(out); err == nil && string(old) == content {
		return nil
	}
	return WriteFile(out, []byte(content), 0o600)
}
