// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"path/filepath"
	"testing"

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
