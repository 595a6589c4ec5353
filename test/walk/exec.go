// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
)

// Exec runs a command in a container of a pod and returns what it printed.
func (k *Kubernetes) Exec(ctx context.Context, pod types.NamespacedName, container string, command ...string) (string, error) {
	url := k.Clientset.CoreV1().RESTClient().Post().
		Resource("pods").Namespace(pod.Namespace).Name(pod.Name).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Container: container, Command: command, Stdout: true, Stderr: true}, scheme.ParameterCodec).URL()
	executor, err := remotecommand.NewSPDYExecutor(k.Config, "POST", url)
	if err != nil {
		return "", fmt.Errorf("executing %s in %s: %w", strings.Join(command, " "), pod, err)
	}
	var out, complaints bytes.Buffer
	if err := executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: &out, Stderr: &complaints}); err != nil {
		return "", fmt.Errorf("executing %s in %s: %w: %s", strings.Join(command, " "), pod, err, complaints.String())
	}
	return out.String(), nil
}
