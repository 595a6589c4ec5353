// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"encoding/json"
	"time"
)

// Comment is what the operator writes into the comment of a Slurm node: which pod stands behind it. Other tools read it;
// the keys of the JSON are part of the API.
type Comment struct {
	// Namespace and PodName name the pod.
	Namespace string `json:"namespace"`
	PodName   string `json:"podName"`
	// Node is the name of the Kubernetes node that the pod runs on.
	Node string `json:"node"`
	// NodeSetName and NodeSetUID name the NodeSet that the pod belongs to; empty in comments of older operators.
	NodeSetName string `json:"nodeSetName,omitempty"`
	NodeSetUID  string `json:"nodeSetUID,omitempty"`
	// Registration is a digest of the registration from which Slurm made the record; empty when that is not known. Later registrations
	// leave the record as it is.
	Registration string `json:"registration,omitempty"`
	// NVLinkInstanceGroup names the group of machines, linked by NVLink, that the Kubernetes node belongs to; empty for none.
	NVLinkInstanceGroup string `json:"nvlinkInstanceGroup,omitempty"`
	// Check is the comment of the last job of a check on the node; empty for none.
	Check string `json:"check,omitempty"`
	// DrainedFor is the reason of a drain that may end without the user who set it, and DrainedAt its time by Slurm's clock; empty for no
	// such drain. DrainedOn is the machine that the drain is about; empty for none.
	DrainedFor string `json:"drainedFor,omitempty"`
	DrainedAt  string `json:"drainedAt,omitempty"`
	DrainedOn  string `json:"drainedOn,omitempty"`
}

// Noting is the comment with the note of a drain, whose time is by Slurm's clock, and the machine that it is about.
func (c Comment) Noting(drain Reason, machine string) Comment {
	c.DrainedFor, c.DrainedAt, c.DrainedOn = drain.Text, drain.At.UTC().Format(time.RFC3339), machine
	return c
}

// WithNote is the comment with the note of another comment.
func (c Comment) WithNote(of Comment) Comment {
	c.DrainedFor, c.DrainedAt, c.DrainedOn = of.DrainedFor, of.DrainedAt, of.DrainedOn
	return c
}

// Notes reports whether the note is about this drain, whose time is by Slurm's clock. Another drain has another time, even for the same
// reason. When slurmd is silent, slurmctld appends that to the reason, which changes its time.
func (c Comment) Notes(drain Reason) bool {
	if c.DrainedFor == "" || drain.At.IsZero() {
		return false
	}
	return c.DrainedFor == drain.Text && c.DrainedAt == drain.At.UTC().Format(time.RFC3339) ||
		drain.Silent() && c.DrainedFor == drain.withoutSilence()
}

// String is the comment as JSON on one line.
func (c Comment) String() string {
	b, err := json.Marshal(c)
	if err != nil {
		// A struct of strings always marshals.
		return "{}"
	}
	return string(b)
}

// ParseComment reads a comment. Users may write what they like there. So ok is false, and the comment empty, for anything that is
// not a JSON object with a pod name. Unknown keys and values that are not strings are passed over.
func ParseComment(s string) (c Comment, ok bool) {
	var fields map[string]any
	if err := json.Unmarshal([]byte(s), &fields); err != nil {
		return Comment{}, false
	}
	text := func(key string) string {
		v, _ := fields[key].(string)
		return v
	}
	c = Comment{
		Namespace:   text("namespace"),
		PodName:     text("podName"),
		Node:        text("node"),
		NodeSetName: text("nodeSetName"),
		NodeSetUID:  text("nodeSetUID"),

		Registration: text("registration"), NVLinkInstanceGroup: text("nvlinkInstanceGroup"), Check: text("check"),
		DrainedFor: text("drainedFor"), DrainedAt: text("drainedAt"), DrainedOn: text("drainedOn"),
	}
	if c.PodName == "" {
		return Comment{}, false
	}
	return c, true
}
