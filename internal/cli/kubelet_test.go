// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
)

// runPod makes a pod that runs on a Kubernetes node of the test's own, whose kubelet answers.
func runPod(t *testing.T, server *apiserver.Server, kubelet http.Handler, pod *corev1.Pod) {
	t.Helper()
	c := server.Client(t, newScheme(t))
	https := httptest.NewTLSServer(kubelet)
	t.Cleanup(https.Close)
	host, text, err := net.SplitHostPort(https.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{GenerateName: "kubelet-"}}
	if err := c.Create(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: host}}
	node.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(port)
	if err := c.Status().Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Delete(context.WithoutCancel(t.Context()), node) })
	status := pod.Status
	pod.Namespace, pod.Spec.NodeName, pod.OwnerReferences = server.Namespace, node.Name, nil
	if err := c.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	pod.Status = status
	pod.Status.Phase = corev1.PodRunning
	if err := c.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
}
