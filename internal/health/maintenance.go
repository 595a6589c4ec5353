// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package health decides which workers are taken out of service because of what is wrong with their machines, and why: by conditions of
// Kubernetes nodes, reasons of Slurm nodes and results of checks. It is pure.
package health

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

const (
	// HardwareIssuesSuspected is the type of the condition of a Kubernetes node whose hardware is suspected to be broken.
	HardwareIssuesSuspected = "HardwareIssuesSuspected"
	// DefaultMaintenanceType is the type of the condition by which a cloud announces that it replaces the machine of a Kubernetes node, unless
	// --maintenance-condition-type is set.
	DefaultMaintenanceType = "NebiusMaintenanceScheduled"
	// DefaultNotReadyTimeout is how long a Node may not be ready, unless --not-ready-timeout is set.
	DefaultNotReadyTimeout = 15 * time.Minute
)

// Conditions are which conditions take the workers of a Kubernetes node out of service. The zero value is none.
type Conditions struct {
	// Types are the types of the conditions, each of which is enough.
	Types []string
	// IgnoredLabels are labels of Kubernetes nodes, as key and value. A node that has one of them is never under maintenance.
	IgnoredLabels map[string]string
	// RebootDegraded is true if machines are rebooted on which a process of a job cannot be ended.
	RebootDegraded bool
	// ReplaceNodes is true if the Node of a machine that is to be replaced is deleted when its jobs have ended.
	ReplaceNodes bool
	// NotReadyTimeout is how long a Node with workers may not be ready before its machine is replaced; 0 is for ever.
	NotReadyTimeout time.Duration
	// Namespaces are those whose workers may have their machines rebooted and replaced; none is all.
	Namespaces []string
}

// Asks reports whether workers of a namespace may have their machines rebooted and replaced.
func (c Conditions) Asks(namespace string) bool {
	return len(c.Namespaces) == 0 || slices.Contains(c.Namespaces, namespace)
}

// Writes reports whether Nodes are written to, or deleted.
func (c Conditions) Writes() bool { return c.RebootDegraded || c.ReplaceNodes || c.NotReadyTimeout > 0 }

// Ignores reports whether a Kubernetes node has a label because of which it is left alone.
func (c Conditions) Ignores(n *corev1.Node) bool {
	for key, value := range c.IgnoredLabels {
		if has, is := n.Labels[key]; is && has == value {
			return true
		}
	}
	return false
}

// announces reports whether a condition of this type announces that the machine is replaced.
func (c Conditions) announces(kind string) bool {
	return slices.Contains(c.Types, kind) || kind == NodeNotReady && c.NotReadyTimeout > 0
}

// Maintenance is what the conditions of a Kubernetes node announce about its replacement. The zero value is nothing. It can be
// compared.
type Maintenance struct {
	// Type, Reason and Message are the type, reason and message of the condition that announces that the machine is replaced, of several the
	// first by type, and NodeNotReady after all others; Type is empty for none.
	Type, Reason, Message string
	// Suspected is true if the hardware is suspected because of a check in Slurm.
	Suspected bool
	// Unknown is true if no condition announces it and the status of one is Unknown.
	Unknown bool
}

// Of returns what the conditions of a Kubernetes node announce. All conditions count, whatever their order: one that is False hides no
// other.
func (c Conditions) Of(n *corev1.Node) (out Maintenance) {
	if c.Ignores(n) {
		return out
	}
	suspected := false
	for _, condition := range n.Status.Conditions {
		suspected = suspected || condition.Type == HardwareIssuesSuspected && condition.Status == corev1.ConditionTrue && condition.Reason == ReasonCheckFailed
		switch kind := string(condition.Type); {
		case !c.announces(kind), condition.Status == corev1.ConditionFalse:
		case condition.Status != corev1.ConditionTrue:
			out.Unknown = out.Type == ""
		case out.Type == "", out.Type == NodeNotReady, kind != NodeNotReady && kind < out.Type:
			out = Maintenance{Type: kind, Reason: condition.Reason, Message: condition.Message}
		}
	}
	out.Suspected = suspected && c.announces(HardwareIssuesSuspected)
	return out
}

// Announced reports whether the machine is to be replaced.
func (m Maintenance) Announced() bool { return m.Type != "" }

// DrainReason returns the reason to drain the Slurm nodes with; empty for none. It names no Kubernetes node, so that one call drains many.
func (m Maintenance) DrainReason() string {
	if !m.Announced() {
		return ""
	}
	return node.MaintenanceReason + ": " + m.Type
}
