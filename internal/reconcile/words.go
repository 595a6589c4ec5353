// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/coxswain-hpc/coxswain/internal/kube"
)

// maxWords is how many bytes of a termination message a condition repeats.
const maxWords = 512

// LastWords is the last termination message of a container that is not ready, on one line. Of several pods the first by name counts. It
// is empty when no such container has one.
func LastWords(pods []corev1.Pod, container string) string {
	pod, said := "", ""
	for i := range pods {
		p := &pods[i]
		if pod != "" && pod < p.Name || p.DeletionTimestamp != nil {
			continue
		}
		if words := Ended(p.Status.ContainerStatuses, container); words != "" {
			pod, said = p.Name, words
		}
	}
	if said == "" {
		return ""
	}
	return fmt.Sprintf("; container %s of %s ended: %s", container, pod, strings.Join(strings.FieldsFunc(said, isLineEnd), "; "))
}

// Ended is the termination message of a container that is not ready; empty for none.
func Ended(statuses []corev1.ContainerStatus, container string) string {
	i := slices.IndexFunc(statuses, func(s corev1.ContainerStatus) bool { return s.Name == container })
	if i < 0 || statuses[i].Ready {
		return ""
	}
	for _, ended := range []*corev1.ContainerStateTerminated{statuses[i].State.Terminated, statuses[i].LastTerminationState.Terminated} {
		if ended != nil && strings.TrimSpace(ended.Message) != "" {
			return strings.ToValidUTF8(ended.Message[:min(len(ended.Message), maxWords)], "")
		}
	}
	return ""
}

func isLineEnd(r rune) bool { return r == '\n' || r == '\r' }

// AppendLastWords adds the last words of a container of the selected pods to a part that is not ready.
func (b *Base) AppendLastWords(ctx context.Context, part *kube.Part, namespace string, selector client.MatchingLabels, container string) error {
	if part.Ready {
		return nil
	}
	var pods corev1.PodList
	if err := b.Client.List(ctx, &pods, client.InNamespace(namespace), selector, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the pods with container %s in %s: %w", container, namespace, err)
	}
	part.Message += LastWords(pods.Items, container)
	return nil
}
