// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"context"
	"time"
)

// Node is what localkube wants to know about a node.
type Node struct {
	Ready bool
	// Message is the kubelet's explanation.
	Message string
	// Heartbeat is when the kubelet last reported, in whole seconds.
	Heartbeat time.Time
}

// Node reads a node.
func (c *Client) Node(ctx context.Context, name string) (Node, error) {
	var object struct {
		Status struct {
			Conditions []struct {
				Type              string    `json:"type"`
				Status            string    `json:"status"`
				Message           string    `json:"message"`
				LastHeartbeatTime time.Time `json:"lastHeartbeatTime"`
			} `json:"conditions"`
		} `json:"status"`
	}
	if err := c.Get(ctx, "/api/v1/nodes/"+name, &object); err != nil {
		return Node{}, err
	}
	for _, condition := range object.Status.Conditions {
		if condition.Type == "Ready" {
			return Node{Ready: condition.Status == "True", Message: condition.Message, Heartbeat: condition.LastHeartbeatTime}, nil
		}
	}
	return Node{Message: "the kubelet has not reported yet"}, nil
}
