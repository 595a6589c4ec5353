// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workerpod reads the labels, annotations and conditions of worker pods and their NodeSets. It is a leaf, for all packages that
// deal with workers.
package workerpod

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

// ShowsState reports whether the pod shows this state by Slurm's last answer about the worker's node; see node.AllConditions.
func ShowsState(p *corev1.Pod, state string) bool {
	c := Condition(p, corev1.PodConditionType(node.ConditionPrefix+state))
	return c != nil && c.Status == corev1.ConditionTrue
}

// Condition returns the condition of that type, or nil.
func Condition(p *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range p.Status.Conditions {
		if p.Status.Conditions[i].Type == kind {
			return &p.Status.Conditions[i]
		}
	}
	return nil
}

// Ordinal returns the number at the end of the name of a pod made in scaling mode StatefulSet.
func Ordinal(p *corev1.Pod) int {
	number, err := strconv.Atoi(p.Name[strings.LastIndexByte(p.Name, '-')+1:])
	if err != nil {
		return -1
	}
	return number
}

// SlurmNode returns the name of a worker's node in Slurm.
func SlurmNode(p *corev1.Pod) string {
	switch {
	case p.Spec.HostNetwork:
		return p.Spec.NodeName
	case p.Spec.Hostname != "":
		return p.Spec.Hostname
	default:
		return p.Name
	}
}
