// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
)

// forwardedPort is the port of this machine from which users of another Kubernetes forward ssh.
const forwardedPort = "2222"

// goOn returns how to use what is there.
func (d *demo) goOn(ctx context.Context) error {
	host, port := "127.0.0.1", forwardedPort
	if d.k.Local {
		address, release, err := d.k.Reach(ctx, d.door.Service)
		if err != nil {
			return err
		}
		release()
		if host, port, err = net.SplitHostPort(address); err != nil {
			return fmt.Errorf("reading the address of the login node: %w", err)
		}
	}
	config, err := d.writeSSHConfig(host, port)
	if err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString("How to go on:\n")
	line := func(what, command string) { fmt.Fprintf(&b, "  %-16s %s\n", what, command) }
	if !d.k.Local {
		line("forward ssh", fmt.Sprintf("kubectl --kubeconfig %s -n %s port-forward svc/%s %s:22 &", d.k.Kubeconfig, d.namespace, d.door.Service.Name, forwardedPort))
	}
	line("log in", "ssh -F "+config+" slurm")
	if d.k.Local {
		line("look around", fmt.Sprintf("bin/localkube kubectl -n %s get slurmclusters,pods", d.namespace))
		line("with kubectl", "export KUBECONFIG="+d.k.Kubeconfig)
		line("stop", "make cluster-down")
	} else {
		line("look around", fmt.Sprintf("kubectl --kubeconfig %s -n %s get slurmclusters,pods", d.k.Kubeconfig, d.namespace))
		line("stop", fmt.Sprintf("kubectl --kubeconfig %s delete namespace %s", d.k.Kubeconfig, d.namespace))
	}
	_, err = fmt.Fprint(os.Stdout, b.String())
	return err
}

// writeSSHConfig writes what ssh needs to know beside the key, and returns the path of its configuration file.
func (d *demo) writeSSHConfig(host, port string) (string, error) {
	knownHosts, config := filepath.Join(d.keep, "known_hosts"), filepath.Join(d.keep, "ssh_config")
	text := fmt.Sprintf(`Host slurm
  HostName %s
  Port %s
  User %s
  IdentityFile %q
  IdentitiesOnly yes
  HostKeyAlias slurm
  UserKnownHostsFile %q
`, host, port, d.sample.User, d.key.Path, knownHosts)
	if err := os.WriteFile(knownHosts, []byte("slurm "+strings.TrimSpace(d.door.HostKey)+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("writing the host key: %w", err)
	}
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return "", fmt.Errorf("writing the configuration of ssh: %w", err)
	}
	return config, nil
}
