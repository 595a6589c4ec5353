// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-hpc/coxswain/internal/controller/slinky/nodeset/nodesetplan"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

const (
	// maxUnscheduledShown is how many workers without a Kubernetes node the message names.
	maxUnscheduledShown = 3
	// maxSchedulerWords is how many bytes of the scheduler's message it repeats.
	maxSchedulerWords = 512
)

// unscheduled returns what pinned workers wait for that Kubernetes has found no node for: "; w-0 waits for Kubernetes node a, to which it
// is pinned: it is cordoned".
func unscheduled(pods []corev1.Pod, nodes []nodesetplan.KubeNode) string {
	fits := map[string]nodesetplan.Fit{}
	for _, node := range nodes {
		fits[node.Name] = node.Fit
	}
	var told []string
	more := 0
	for i := range pods {
		p := workerpod.Facts(&pods[i])
		switch {
		case !p.Unschedulable || p.Terminating:
		case len(told) == maxUnscheduledShown:
			more++
		case p.Node != "":
			told = append(told, fmt.Sprintf("; %s waits for Kubernetes node %s, to which it is pinned: %s", p.Name, p.Node, obstacle(fits[p.Node])))
		default: // as when its claim has a volume on a Kubernetes node that is gone
			told = append(told, fmt.Sprintf("; %s is not scheduled: %s", p.Name, schedulerWords(&pods[i])))
		}
	}
	if more > 0 {
		told = append(told, fmt.Sprintf("; and %d more", more))
	}
	return strings.Join(told, "")
}

// obstacle returns what keeps a worker from a Kubernetes node.
func obstacle(fit nodesetplan.Fit) string {
	switch fit {
	case nodesetplan.Fits:
		return "it is cordoned"
	case nodesetplan.Belongs:
		return "it is not ready, or is under memory, disk or PID pressure"
	case nodesetplan.Starts:
		return "it has no room for the worker"
	default:
		return "it no longer matches the NodeSet"
	}
}

func schedulerWords(pod *corev1.Pod) string {
	words := workerpod.Condition(pod, corev1.PodScheduled).Message
	return strings.ToValidUTF8(words[:min(len(words), maxSchedulerWords)], "")
}
