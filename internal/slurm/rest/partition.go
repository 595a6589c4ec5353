// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// Partition is what Coxswain reads of a partition.
type Partition struct {
	Name string
	// State is "UP", "DOWN", "DRAIN" or "INACTIVE".
	State []string
	// Nodes is the configured host list, such as "ALL", NodeSets the configured node sets; Total counts the nodes.
	Nodes    string
	NodeSets string
	Total    int
}

// Partitions lists all partitions.
func (c *Client) Partitions(ctx context.Context) ([]Partition, error) {
	var list []Partition
	_, err := c.list(ctx, "partitions/", time.Time{}, maxOtherBytes, func(r *reader, _ bool) (errs []slurmError, err error) {
		list, errs, err = decodeDated(r, "partitions", (*reader).partition)
		return errs, err
	})
	if err != nil {
		return nil, fmt.Errorf("listing Slurm partitions of %s: %w", c, err)
	}
	return list, nil
}

// DeletePartition deletes a partition from slurmctld, from v0.0.45 (Slurm 26.05) on. slurmctld checks for jobs in the same step: while
// the partition has a job that runs, waits, is held or suspended, the error has CodePartitionInUse and nothing is changed. Jobs that
// could run in another partition as well go on to wait there. It is Absent when there is none of that name. A line of slurm.conf brings
// the partition back when slurmctld reads it again.
func (c *Client) DeletePartition(ctx context.Context, name string) error {
	fail := func(err error) error {
		return fmt.Errorf("deleting Slurm partition %s of %s: %w", shorten(name, 200), c, err)
	}
	if name == "" {
		return fail(errors.New("it has no name"))
	}
	if err := c.needs(ctx, "v0.0.45", "delete partitions"); err != nil {
		return fail(err)
	}
	err := c.write(ctx, http.MethodDelete, "partition/"+url.PathEscape(name), nil)
	if refusal, ok := errors.AsType[*Error](err); ok && refusal.Code == CodePartition {
		refusal.Kind = Absent // what else can be wrong with a name
	}
	if err != nil {
		return fail(err)
	}
	return nil
}

// decodeDated reads an answer with a list under key. An empty list without a time means nothing, as with nodes.
func decodeDated[T any](r *reader, key string, entry func(*reader) T) ([]T, []slurmError, error) {
	var a answer
	var list []T
	found := false
	err := a.decode(r, func(member string) bool {
		if member != key || r.peek() == 'n' {
			return false
		}
		found, list = true, nil
		for ok := r.open('['); ok && r.admit(len(list), maxEntries, key); ok = r.more('[') {
			list = append(list, entry(r))
		}
		return true
	})
	switch {
	case err != nil:
		return nil, nil, err
	case len(a.errors) > 0:
		return nil, a.errors, nil
	case !found:
		return nil, nil, errNoList
	case len(list) == 0 && a.lastUpdate.IsZero():
		return nil, nil, errUndated
	}
	return list, nil, nil
}

func (r *reader) partition() Partition {
	var p Partition
	for ok := r.open('{'); ok; ok = r.more('{') {
		switch string(r.key()) {
		case "name":
			p.Name = r.text("")
		case "node_sets":
			p.NodeSets = r.text("")
		case "nodes":
			for ok := r.open('{'); ok; ok = r.more('{') {
				switch string(r.key()) {
				case "configured":
					p.Nodes = r.text("")
				case "total":
					p.Total = int(r.integer())
				default:
					r.skip()
				}
			}
		case "partition":
			for ok := r.open('{'); ok; ok = r.more('{') {
				if string(r.key()) == "state" {
					p.State = r.list()
				} else {
					r.skip()
				}
			}
		default:
			r.skip()
		}
	}
	return p
}
