// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	_ "embed"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"github.com/coxswain-hpc/coxswain/dev/internal/layout"
	"github.com/coxswain-hpc/coxswain/dev/internal/pki"
	"github.com/coxswain-hpc/coxswain/dev/internal/proc"
	"github.com/coxswain-hpc/coxswain/dev/internal/state"
)

//go:embed manifests/audit-policy.yaml
var auditPolicy []byte

// startControlPlane starts what does not run of etcd, the apiserver, the
// controllers and the scheduler, and waits until the cluster can be used.
func (c *Cluster) startControlPlane(ctx context.Context, running map[string]proc.Process) error {
	if err := os.MkdirAll(c.Config(), 0o750); err != nil {
		return fmt.Errorf("writing the audit policy: %w", err)
	}
	if err := pki.WriteFile(auditPolicyFile(c.Cluster), auditPolicy, 0o644); err != nil {
		return err
	}
	if err := c.ensure(ctx, running, etcd, etcdFlags(c.Cluster, c.state)); err != nil {
		return err
	}
	if err := c.ensure(ctx, running, apiserver, apiserverFlags(c.Cluster, c.state)); err != nil {
		return err
	}
	client, err := c.client()
	if err != nil {
		return err
	}
	if err := c.poll(ctx, "the apiserver", apiTimeout, client.Ready, apiserver, etcd); err != nil {
		return err
	}
	c.progress.Step("apiserver ready at %s", c.state.APIServer())
	if err := c.ensure(ctx, running, controllerManager, controllerManagerFlags(c.Cluster, c.state)); err != nil {
		return err
	}
	if err := c.ensure(ctx, running, scheduler, schedulerFlags(c.Cluster)); err != nil {
		return err
	}
	// The first thing that controllers make and that pods need.
	account := func(ctx context.Context) error {
		return client.Get(ctx, "/api/v1/namespaces/default/serviceaccounts/default", &struct{}{})
	}
	if err := c.poll(ctx, "the controller-manager", apiTimeout, account, controllerManager, apiserver, etcd); err != nil {
		return err
	}
	c.progress.Step("control plane ready")
	return nil
}

// ensure starts a component of hyperkube on the host unless it runs.
func (c *Cluster) ensure(ctx context.Context, running map[string]proc.Process, component string, flags []string) error {
	if _, ok := running[component]; ok {
		return nil
	}
	if err := c.waitForPorts(ctx, component); err != nil {
		return err
	}
	_, exited, err := proc.Start(proc.Spec{
		Dir: c.Dir, Component: component,
		Path: c.program(component), Args: append([]string{component}, flags...),
		Log: c.Log(component),
	})
	if err != nil {
		return err
	}
	c.watched.add(component, exited)
	return nil
}

// waitForPorts makes sure that the ports are free that are recorded for a component
// that is about to be started. A predecessor that was just killed may hold them
// for another moment.
func (c *Cluster) waitForPorts(ctx context.Context, component string) error {
	ports := map[string][]uint16{
		etcd:      {c.state.Ports.Etcd, c.state.Ports.EtcdPeer},
		apiserver: {c.state.Ports.API},
	}
	for _, port := range ports[component] {
		err := c.poll(ctx, fmt.Sprintf("port %d of %s", port, component), portTimeout, func(ctx context.Context) error {
			if portInUse(ctx, port) {
				return fmt.Errorf("another program uses it (see \"ss -ltnp\"): stop that one, or give the cluster other ports with \"localkube down --name %s\" and up again", c.Name)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func portInUse(ctx context.Context, port uint16) bool {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", ":"+strconv.Itoa(int(port)))
	if err != nil {
		return true
	}
	return l.Close() != nil
}

func auditPolicyFile(l layout.Cluster) string {
	return filepath.Join(l.Config(), "audit-policy.yaml")
}

func etcdFlags(l layout.Cluster, s state.State) []string {
	key := func(name string) string { return filepath.Join(l.PKI(), name) }
	client := fmt.Sprintf("https://127.0.0.1:%d", s.Ports.Etcd)
	peer := fmt.Sprintf("https://127.0.0.1:%d", s.Ports.EtcdPeer)
	return []string{
		"--name=localkube",
		"--data-dir=" + l.Etcd(),
		"--listen-client-urls=" + client,
		"--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=localkube=" + peer,
		// Other users of the machine must not reach the cluster's secrets.
		"--client-cert-auth",
		"--trusted-ca-file=" + key("etcd-ca.crt"),
		"--cert-file=" + key("etcd.crt"),
		"--key-file=" + key("etcd.key"),
		"--peer-client-cert-auth",
		"--peer-trusted-ca-file=" + key("etcd-ca.crt"),
		"--peer-cert-file=" + key("etcd.crt"),
		"--peer-key-file=" + key("etcd.key"),
		// Data survive the end of the process, not a crash of the machine.
		"--unsafe-no-fsync",
		"--quota-backend-bytes=8589934592",
		"--log-level=warn",
	}
}

func apiserverFlags(l layout.Cluster, s state.State) []string {
	key := func(name string) string { return filepath.Join(l.PKI(), name) }
	flags := []string{
		fmt.Sprintf("--etcd-servers=https://127.0.0.1:%d", s.Ports.Etcd),
		"--etcd-cafile=" + key("etcd-ca.crt"),
		"--etcd-certfile=" + key("apiserver-etcd-client.crt"),
		"--etcd-keyfile=" + key("apiserver-etcd-client.key"),
		"--bind-address=" + s.APIHost().String(),
		"--advertise-address=" + s.APIHost().String(),
		fmt.Sprintf("--secure-port=%d", s.Ports.API),
		"--tls-cert-file=" + key("apiserver.crt"),
		"--tls-private-key-file=" + key("apiserver.key"),
		"--client-ca-file=" + key("ca.crt"),
		"--service-account-key-file=" + key("service-accounts.pub"),
		"--service-account-signing-key-file=" + key("service-accounts.key"),
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--allow-privileged=true",
		"--service-cluster-ip-range=" + s.Network.Services.String(),
		"--kubelet-client-certificate=" + key("apiserver-kubelet-client.crt"),
		"--kubelet-client-key=" + key("apiserver-kubelet-client.key"),
		"--kubelet-certificate-authority=" + key("ca.crt"),
		"--kubelet-preferred-address-types=InternalIP",
		"--requestheader-client-ca-file=" + key("front-proxy-ca.crt"),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-username-headers=X-Remote-User",
		"--proxy-client-cert-file=" + key("front-proxy-client.crt"),
		"--proxy-client-key-file=" + key("front-proxy-client.key"),
		// Webhooks may be processes on the host behind a Service without pods.
		"--enable-aggregator-routing=true",
		"--profiling=false",
		"--max-requests-inflight=2000",
		"--max-mutating-requests-inflight=1000",
		"--audit-policy-file=" + auditPolicyFile(l),
		"--audit-log-path=" + filepath.Join(l.Logs(), "audit.log"),
		"--audit-log-maxsize=100",
		"--audit-log-maxbackup=3",
	}
	if s.ControlPlaneOnly {
		// A loopback address cannot be an endpoint of the Service kubernetes.
		return append(flags, "--endpoint-reconciler-type=none")
	}
	return append(flags, "--endpoint-reconciler-type=lease")
}

func controllerManagerFlags(l layout.Cluster, s state.State) []string {
	key := func(name string) string { return filepath.Join(l.PKI(), name) }
	kubeconfig := key(controllerManager + ".kubeconfig")
	return []string{
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--service-account-private-key-file=" + key("service-accounts.key"),
		"--root-ca-file=" + key("ca.crt"),
		"--cluster-signing-cert-file=" + key("ca.crt"),
		"--cluster-signing-key-file=" + key("ca.key"),
		"--use-service-account-credentials=true",
		"--allocate-node-cidrs=false",
		"--cluster-cidr=" + s.Network.Pods.String(),
		"--service-cluster-ip-range=" + s.Network.Services.String(),
		"--leader-elect=false",
		"--secure-port=0",
		"--profiling=false",
		"--kube-api-qps=200",
		"--kube-api-burst=400",
	}
}

func schedulerFlags(l layout.Cluster) []string {
	kubeconfig := filepath.Join(l.PKI(), scheduler+".kubeconfig")
	return []string{
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--leader-elect=false",
		"--secure-port=0",
		"--profiling=false",
		"--kube-api-qps=200",
		"--kube-api-burst=400",
	}
}

func hostControllerFlags(l layout.Cluster, s state.State) []string {
	return []string{
		"--kubeconfig=" + filepath.Join(l.PKI(), hostController+".kubeconfig"),
		"--storage=" + l.Storage(),
		"--load-balancers=" + s.Network.LoadBalancers.String(),
	}
}
