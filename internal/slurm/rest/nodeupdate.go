// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
)

// NodeUpdate is what to change of one or many nodes. What is zero stays as it is.
type NodeUpdate struct {
	// State is one of the states that an administrator may set: "DRAIN", "UNDRAIN", "RESUME", "DOWN", "IDLE" …; see
	// scontrol(1), "NODES - SPECIFICATIONS FOR UPDATE COMMAND".
	State string
	// Reason goes with DRAIN and DOWN. UNDRAIN and RESUME clear it whatever is given here, and it cannot be set to
	// nothing. A DRAIN of a drained node with another reason overwrites the first one.
	Reason string
	// Comment replaces the node's comment; a pointer because an empty comment is one too. Extra likewise.
	Comment *string
	Extra   *string
	// Topology is the place of the node, "default:leaf1"; from v0.0.43 (Slurm 25.05) on.
	Topology *string
	// Features are the available features, FeaturesActive those that are active; nil leaves them alone, and a list
	// without entries removes all. Slurm refuses what would leave a feature active that is not available.
	Features       []string
	FeaturesActive []string
}

// empty reports whether there is nothing to change.
func (u NodeUpdate) empty() bool {
	return u.State == "" && u.Reason == "" && u.Comment == nil && u.Extra == nil && u.Topology == nil &&
		u.Features == nil && u.FeaturesActive == nil
}

// UpdateNodes makes one change to all nodes of a hostlist expression ("worker-[0-9],gpu-3").
//
// Slurm goes through the list in its order and stops at the first node that it refuses: an Absent or Refused means that those before it
// are changed. After Unavailable and Malformed it is unknown whether the change was made. It is never repeated here; repeating it is
// safe if the same change may be made twice.
func (c *Client) UpdateNodes(ctx context.Context, nodes string, update NodeUpdate) error {
	fail := func(err error) error {
		return fmt.Errorf("updating Slurm nodes %s of %s: %w", shorten(nodes, 200), c, err)
	}
	if nodes == "" || update.empty() {
		return fail(errors.New("nothing to update"))
	}
	if update.Topology != nil {
		if err := c.needs(ctx, "v0.0.43", "set the topology of nodes"); err != nil {
			return fail(err)
		}
	}
	body := struct {
		Name           []string  `json:"name"`
		State          []string  `json:"state,omitempty"`
		Reason         string    `json:"reason,omitempty"`
		Comment        *string   `json:"comment,omitempty"`
		Extra          *string   `json:"extra,omitempty"`
		Topology       *string   `json:"topology_str,omitempty"`
		Features       *[]string `json:"features,omitempty"`
		FeaturesActive *[]string `json:"features_act,omitempty"`
	}{
		Name: []string{nodes}, Reason: update.Reason, Comment: update.Comment, Extra: update.Extra, Topology: update.Topology,
		Features: listed(update.Features), FeaturesActive: listed(update.FeaturesActive),
	}
	if update.State != "" {
		body.State = []string{update.State}
	}
	if err := c.write(ctx, http.MethodPost, "nodes/", body); err != nil {
		return fail(err)
	}
	return nil
}

// listed makes a list without entries different from none. slurmrestd treats an empty list as none, and a list of one empty string as
// an empty list.
func listed(list []string) *[]string {
	switch {
	case list == nil:
		return nil
	case len(list) == 0:
		return &[]string{""}
	}
	return &list
}

// DeleteNodes deletes the records of dynamic nodes, those of a hostlist expression. Slurm refuses with CodeNodesBusy while
// one of them runs jobs, and it is Absent when one of them does not exist; others may have been deleted nevertheless. A
// slurmd that still runs on a deleted node does not register again until it is restarted. The expression becomes part of
// the URL: 60 kB of it were accepted.
func (c *Client) DeleteNodes(ctx context.Context, nodes string) error {
	fail := func(err error) error {
		return fmt.Errorf("deleting Slurm nodes %s of %s: %w", shorten(nodes, 200), c, err)
	}
	if nodes == "" {
		return fail(errors.New("no node is named"))
	}
	if err := c.write(ctx, http.MethodDelete, "node/"+url.PathEscape(nodes), nil); err != nil {
		return fail(err)
	}
	return nil
}

// CreateNode makes a node of a line of slurm.conf, such as "NodeName=cloud-1 CPUs=4 State=EXTERNAL"; from v0.0.44 (Slurm
// 25.11) on.
func (c *Client) CreateNode(ctx context.Context, line string) error {
	fail := func(err error) error { return fmt.Errorf("creating a Slurm node of %s: %w", c, err) }
	if err := c.needs(ctx, "v0.0.44", "create nodes"); err != nil {
		return fail(err)
	}
	if err := c.write(ctx, http.MethodPost, "new/node/", map[string]string{"node_conf": line}); err != nil {
		return fail(err)
	}
	return nil
}

// write makes a call that changes something and answers with nothing but errors[]. A nil body is none.
func (c *Client) write(ctx context.Context, method, path string, body any) error {
	encoded, err := encode(body)
	if err != nil {
		return err
	}
	_, err = c.do(ctx, call{method: method, path: path, body: encoded, decode: decodeResult})
	return err
}

// encode writes a body; nil is none.
func encode(body any) ([]byte, error) {
	if body == nil {
		return nil, nil
	}
	var encoded bytes.Buffer
	encoder := json.NewEncoder(&encoded)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(body); err != nil {
		return nil, err
	}
	return encoded.Bytes(), nil
}

// decodeResult reads an answer that has nothing but errors[].
func decodeResult(r *reader) ([]slurmError, error) {
	var a answer
	err := a.decode(r, nil)
	return a.errors, err
}
