// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Kubeconfig writes a kubeconfig with every right and returns its name. endpoint replaces the server's, for a proxy that
// needs no certificate; empty: the server itself.
func (s *Server) Kubeconfig(t testing.TB, endpoint string) string {
	t.Helper()
	cluster, user := &clientcmdapi.Cluster{Server: endpoint}, &clientcmdapi.AuthInfo{}
	if endpoint == "" {
		tls := theShared.plane.config.TLSClientConfig
		cluster.Server, cluster.CertificateAuthority = theShared.plane.config.Host, tls.CAFile
		user.ClientCertificate, user.ClientKey = tls.CertFile, tls.KeyFile
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"test": cluster}, AuthInfos: map[string]*clientcmdapi.AuthInfo{"test": user},
		Contexts: map[string]*clientcmdapi.Context{"test": {Cluster: "test", AuthInfo: "test"}}, CurrentContext: "test",
	}, path)
	if err != nil {
		t.Fatalf("writing %s: %v", path, err)
	}
	return path
}

// Workloads lets Kubernetes' own controllers of StatefulSets, Deployments and ReplicaSets run until the test ends, as fast as
// they can. They reach the API server at endpoint, as in Kubeconfig.
func (s *Server) Workloads(t testing.TB, endpoint string) {
	t.Helper()
	binary, err := findBinary()
	if err != nil {
		t.Fatalf("finding kube-controller-manager: %v", err)
	}
	p, err := startProcess(theShared.plane.dir, "kube-controller-manager", binary,
		"--kubeconfig="+s.Kubeconfig(t, endpoint), "--controllers=statefulset-controller,deployment-controller,replicaset-controller",
		"--leader-elect=false", "--kube-api-qps=10000", "--kube-api-burst=10000", "--secure-port=0", "--use-service-account-credentials=false")
	if err != nil {
		t.Fatalf("starting kube-controller-manager: %v", err)
	}
	t.Cleanup(p.stop)
}

// Scheduler lets kube-scheduler run until the test ends, as fast as it can.
func (s *Server) Scheduler(t testing.TB) {
	t.Helper()
	binary, err := findBinary()
	if err != nil {
		t.Fatalf("finding kube-scheduler: %v", err)
	}
	p, err := startProcess(theShared.plane.dir, "kube-scheduler", binary,
		"--kubeconfig="+s.Kubeconfig(t, ""), "--leader-elect=false", "--kube-api-qps=10000", "--kube-api-burst=10000", "--secure-port=0")
	if err != nil {
		t.Fatalf("starting kube-scheduler: %v", err)
	}
	t.Cleanup(p.stop)
}

// CPU returns the processor time that kube-apiserver and etcd have used.
func (s *Server) CPU(t testing.TB) time.Duration {
	t.Helper()
	var sum time.Duration
	for _, p := range []*process{theShared.plane.apiserver, theShared.plane.etcd} {
		used, err := CPUOf(p.cmd.Process.Pid)
		if err != nil {
			t.Fatalf("reading the processor time of %s: %v", p.name, err)
		}
		sum += used
	}
	return sum
}

// CPUOf returns the processor time that a process has used.
func CPUOf(pid int) (time.Duration, error) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0, err
	}
	// proc_pid_stat(5): utime and stime are fields 14 and 15, in ticks of 10 ms; the name in field 2 may have blanks.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	ticks := 0
	for _, field := range fields[11:13] {
		n, err := strconv.Atoi(field)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond, nil
}
