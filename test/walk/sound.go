// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Restarts is how often containers had been restarted at some time. The zero value is from before all pods.
type Restarts map[containerKey]int32

type containerKey struct {
	pod       types.UID
	container string
}

// RestartsIn counts the restarts in some namespaces up to now.
func (k *Kubernetes) RestartsIn(ctx context.Context, namespaces ...string) (Restarts, error) {
	pods, err := k.podsIn(ctx, namespaces)
	if err != nil {
		return nil, err
	}
	out := Restarts{}
	for _, p := range pods {
		for _, s := range containerStatuses(&p) {
			out[containerKey{p.UID, s.Name}] = s.RestartCount
		}
	}
	return out, nil
}

// AwaitSound waits until all pods of some namespaces are ready, and fails at once when one of their containers has been
// restarted since before: what starts in a good order needs no second try. The error names each of them.
func (k *Kubernetes) AwaitSound(ctx context.Context, before Restarts, within time.Duration, namespaces ...string) error {
	var restarted error
	err := Poll(ctx, within, 500*time.Millisecond, "all pods to be ready", func(ctx context.Context) error {
		pods, err := k.podsIn(ctx, namespaces)
		if err != nil {
			return err
		}
		var unready error
		unready, restarted = unsound(pods, before)
		if restarted != nil {
			return nil //nolint:nilerr // no use in waiting: told below
		}
		return unready
	})
	if err = cmp.Or(err, restarted); err == nil {
		return nil
	}
	for _, n := range namespaces {
		err = errors.Join(err, k.Report(ctx, n))
	}
	return err
}

// unsound returns which pods are not ready, and which containers have been restarted.
func unsound(pods []corev1.Pod, before Restarts) (unready, restarted error) {
	if len(pods) == 0 {
		unready = errors.New("there are no pods")
	}
	for _, p := range pods {
		if !IsReady(&p) {
			unready = errors.Join(unready, fmt.Errorf("pod %s in %s is not ready: %s%s", p.Name, p.Namespace, p.Status.Phase, troubles(&p)))
		}
		for _, s := range containerStatuses(&p) {
			if n := s.RestartCount - before[containerKey{p.UID, s.Name}]; n > 0 {
				restarted = errors.Join(restarted, fmt.Errorf("container %s of pod %s in %s was restarted (%d times)%s", s.Name, p.Name, p.Namespace, n, lastWords(s)))
			}
		}
	}
	return unready, restarted
}

// lastWords returns how a container ended before it was started again.
func lastWords(s corev1.ContainerStatus) string {
	last := s.LastTerminationState.Terminated
	if last == nil {
		return ""
	}
	text := fmt.Sprintf(": %s, exit code %d", last.Reason, last.ExitCode)
	if message := strings.TrimSpace(last.Message); message != "" {
		text += ", " + message
	}
	return text
}

// PodTable lists the pods of some namespaces as kubectl does.
func (k *Kubernetes) PodTable(ctx context.Context, namespaces ...string) (string, error) {
	pods, err := k.podsIn(ctx, namespaces)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "NAMESPACE\tNAME\tREADY\tSTATUS\tRESTARTS")
	for _, p := range pods {
		// Containers that run all the time: also init containers that are sidecars.
		var running, ready, restarts int
		for _, s := range containerStatuses(&p) {
			restarts += int(s.RestartCount)
			if s.State.Terminated != nil && s.State.Terminated.ExitCode == 0 {
				continue
			}
			running++
			if s.Ready {
				ready++
			}
		}
		fmt.Fprintf(w, "%s\t%s\t%d/%d\t%s\t%d\n", p.Namespace, p.Name, ready, running, p.Status.Phase, restarts)
	}
	if err := w.Flush(); err != nil {
		return "", fmt.Errorf("listing pods: %w", err)
	}
	return b.String(), nil
}

func (k *Kubernetes) podsIn(ctx context.Context, namespaces []string) ([]corev1.Pod, error) {
	var out []corev1.Pod
	for _, n := range namespaces {
		var pods corev1.PodList
		if err := k.List(ctx, &pods, client.InNamespace(n)); err != nil {
			return nil, fmt.Errorf("listing the pods of %s: %w", n, err)
		}
		slices.SortFunc(pods.Items, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
		out = append(out, pods.Items...)
	}
	return out, nil
}
