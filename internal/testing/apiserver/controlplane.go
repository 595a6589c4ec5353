// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// controlPlane is one etcd and one kube-apiserver with their files below dir.
type controlPlane struct {
	dir             string
	etcd, apiserver *process
	// serve is the command line of the API server, without its first word.
	serve       []string
	binary      string
	config      *rest.Config
	installCRDs func() error
	grantRole   func() error
}

// startControlPlane starts both processes and waits until the server answers ready.
func startControlPlane(ctx context.Context) (*controlPlane, error) {
	binary, err := findBinary()
	if err != nil {
		return nil, err
	}
	// A port can be taken between its choice and its use, so one failed start is tried again.
	plane, err := tryStart(ctx, binary)
	if err != nil && ctx.Err() == nil {
		plane, err = tryStart(ctx, binary)
	}
	return plane, err
}

func tryStart(ctx context.Context, binary string) (_ *controlPlane, err error) {
	dir, err := os.MkdirTemp("", "coxswain-apiserver-")
	if err != nil {
		return nil, fmt.Errorf("making a directory for the control plane: %w", err)
	}
	c := &controlPlane{dir: dir, binary: binary}
	c.installCRDs = sync.OnceValue(c.createCRDs)
	c.grantRole = sync.OnceValue(c.createRole)
	defer func() {
		if err != nil {
			c.stop()
		}
	}()
	ports, err := freePorts(3)
	if err != nil {
		return nil, err
	}
	if err := c.startEtcd(ports[0], ports[1]); err != nil {
		return nil, err
	}
	if err := c.startAPIServer(ports[0], ports[2]); err != nil {
		return nil, err
	}
	if err := c.waitReady(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

func (c *controlPlane) startEtcd(clientPort, peerPort string) (err error) {
	clientURL, peerURL := "http://127.0.0.1:"+clientPort, "http://127.0.0.1:"+peerPort
	c.etcd, err = startProcess(c.dir, "etcd", c.binary,
		"--name=test", "--data-dir="+filepath.Join(c.dir, "etcd"),
		"--listen-client-urls="+clientURL, "--advertise-client-urls="+clientURL,
		"--listen-peer-urls="+peerURL, "--initial-advertise-peer-urls="+peerURL, "--initial-cluster=test="+peerURL,
		"--unsafe-no-fsync", "--log-level=warn")
	return err
}

func (c *controlPlane) startAPIServer(etcdPort, port string) error {
	keys, err := writePKI(c.dir)
	if err != nil {
		return err
	}
	c.serve = []string{
		"--etcd-servers=http://127.0.0.1:" + etcdPort,
		"--bind-address=127.0.0.1", "--secure-port=" + port,
		"--tls-cert-file=" + keys.servingCert, "--tls-private-key-file=" + keys.servingKey,
		"--client-ca-file=" + keys.ca,
		"--service-account-key-file=" + keys.servingKey, "--service-account-signing-key-file=" + keys.servingKey,
		"--service-account-issuer=https://kubernetes.default.svc",
		"--authorization-mode=RBAC",
		// ServiceAccounts' tokens and default accounts are not created here, and no kubelet runs.
		"--disable-admission-plugins=ServiceAccount",
		// As OpenShift has it: who makes an object that holds up the end of its owner needs a right to the owner's finalizers.
		"--enable-admission-plugins=OwnerReferencesPermissionEnforcement",
		"--service-cluster-ip-range=10.96.0.0/16", "--allow-privileged=true",
		"--endpoint-reconciler-type=none", "--profiling=false",
	}
	c.config = &rest.Config{
		Host:            "https://127.0.0.1:" + port,
		TLSClientConfig: rest.TLSClientConfig{CAFile: keys.ca, CertFile: keys.adminCert, KeyFile: keys.adminKey},
		QPS:             -1,
	}
	c.apiserver, err = startProcess(c.dir, "kube-apiserver", c.binary, c.serve...)
	return err
}

// interrupt ends the API server, and starts it again at the same address when meanwhile returns. etcd runs on.
func (c *controlPlane) interrupt(ctx context.Context, meanwhile func()) (err error) {
	c.apiserver.stop()
	meanwhile()
	if c.apiserver, err = startProcess(c.dir, "kube-apiserver", c.binary, c.serve...); err != nil {
		return err
	}
	return c.waitReady(ctx)
}

// waitReady polls /readyz until it answers 200, a process ends or ctx is over.
func (c *controlPlane) waitReady(ctx context.Context) error {
	httpClient, err := rest.HTTPClientFor(c.config)
	if err != nil {
		return fmt.Errorf("making a client for the control plane: %w", err)
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if ready(ctx, httpClient, c.config.Host) {
			return nil
		}
		select {
		case <-c.etcd.exited:
			return c.etcd.died()
		case <-c.apiserver.exited:
			return c.apiserver.died()
		case <-ctx.Done():
			return fmt.Errorf("waiting for kube-apiserver to be ready: %w", ctx.Err())
		case <-tick.C:
		}
	}
}

func ready(ctx context.Context, httpClient *http.Client, host string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, host+"/readyz", nil)
	if err != nil {
		return false
	}
	response, err := httpClient.Do(request)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// createCRDs creates the CRDs of this repository and waits until they are served.
func (c *controlPlane) createCRDs() error {
	dir, err := crdDirectory()
	if err != nil || dir == "" {
		return err
	}
	if _, err := envtest.InstallCRDs(c.config, envtest.CRDInstallOptions{Paths: []string{dir}}); err != nil {
		return fmt.Errorf("installing the CRDs of %s: %w", dir, err)
	}
	return nil
}

// poll repeats check until it holds or ctx is over.
func poll(ctx context.Context, check func() bool) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !check() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	return nil
}

// stop ends both processes and deletes their files.
func (c *controlPlane) stop() {
	c.apiserver.stop()
	c.etcd.stop()
	if err := os.RemoveAll(c.dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		fmt.Fprintf(os.Stderr, "deleting %s: %v\n", c.dir, err)
	}
}
