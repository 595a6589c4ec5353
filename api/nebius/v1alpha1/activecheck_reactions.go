// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"
)

// Reactions is what happens to the nodes of a Slurm job that has ended.
type Reactions struct {
	// DrainSlurmNode drains the nodes. It is an object with drainReasonPrefix, the text that the reason begins with; the
	// first generation wrote true or false. Default: no drain.
	// https://slurm.schedmd.com/scontrol.html#OPT_Reason
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	DrainSlurmNode *DrainReaction `json:"drainSlurmNode,omitempty"`

	// CommentSlurmNode comments the nodes. It is an object with commentPrefix, the text that the comment begins with; the
	// first generation wrote true or false. Default: no comment.
	// https://slurm.schedmd.com/scontrol.html#OPT_Comment
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	CommentSlurmNode *CommentReaction `json:"commentSlurmNode,omitempty"`

	// Deprecated: has no successor. Reserves each node: reservation <prefix>-<node>.
	// https://slurm.schedmd.com/reservations.html
	// +optional
	AddReservation *Reservation `json:"addReservation,omitempty"`

	// Deprecated: has no successor. Ends the reservation <prefix>-<node> of each node.
	// +optional
	RemoveReservation *Reservation `json:"removeReservation,omitempty"`

	// Deprecated: use drainSlurmNode.drainReasonPrefix. With true, the reason of the drain is one that also marks the
	// Kubernetes node.
	// +optional
	SetCondition bool `json:"setCondition,omitempty"`
}

// Reservation names reservations.
type Reservation struct {
	// Prefix is what the name of the reservation begins with.
	// +optional
	// +kubebuilder:validation:Pattern=`^[^\s,=#"'\\\x00]*$`
	Prefix string `json:"prefix,omitempty"`
}

// DrainReaction is a DrainSlurmNode, or true or false. It is kept as written.
//
// +kubebuilder:pruning:PreserveUnknownFields
type DrainReaction struct {
	runtime.RawExtension `json:",inline"`
}

// DrainSlurmNode is how nodes are drained.
type DrainSlurmNode struct {
	// DrainReasonPrefix is what the reason begins with, on one line. Default: the operator's text.
	DrainReasonPrefix string `json:"drainReasonPrefix,omitempty"`
}

// Decode returns how nodes are drained, or nil if they are not. What is neither an object nor true nor false is an error.
func (r *DrainReaction) Decode() (*DrainSlurmNode, error) {
	if r == nil {
		return nil, nil
	}
	out, err := decodeReaction[DrainSlurmNode](r.Raw)
	if err != nil || out == nil {
		return nil, err
	}
	if err := requireLine("drainReasonPrefix", out.DrainReasonPrefix); err != nil {
		return nil, err
	}
	return out, nil
}

// CommentReaction is a CommentSlurmNode, or true or false. It is kept as written.
//
// +kubebuilder:pruning:PreserveUnknownFields
type CommentReaction struct {
	runtime.RawExtension `json:",inline"`
}

// CommentSlurmNode is how nodes are commented.
type CommentSlurmNode struct {
	// CommentPrefix is what the comment begins with, on one line. Default: the operator's text.
	CommentPrefix string `json:"commentPrefix,omitempty"`
}

// Decode returns how nodes are commented, or nil if they are not. What is neither an object nor true nor false is an
// error.
func (r *CommentReaction) Decode() (*CommentSlurmNode, error) {
	if r == nil {
		return nil, nil
	}
	out, err := decodeReaction[CommentSlurmNode](r.Raw)
	if err != nil || out == nil {
		return nil, err
	}
	if err := requireLine("commentPrefix", out.CommentPrefix); err != nil {
		return nil, err
	}
	return out, nil
}

// decodeReaction reads raw as a T, as an empty T if it is true, or as nothing if it is false.
func decodeReaction[T any](raw []byte) (*T, error) {
	switch raw = bytes.TrimSpace(raw); {
	case len(raw) == 0 || string(raw) == "null" || string(raw) == "false":
		return nil, nil
	case string(raw) == "true":
		return new(T), nil
	case raw[0] != '{':
		return nil, fmt.Errorf("must be an object, true or false, not %s", raw)
	}
	out := new(T)
	strict, err := kjson.UnmarshalStrict(raw, out)
	if err != nil {
		return nil, fmt.Errorf("decoding: %w", err)
	}
	if err := errors.Join(strict...); err != nil {
		return nil, err
	}
	return out, nil
}

func requireLine(field, value string) error {
	if i := strings.IndexAny(value, "\r\n\x00"); i >= 0 {
		return fmt.Errorf("%s: must be one line, found %q", field, value[i])
	}
	return nil
}
