// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"fmt"
	"net/http"
)

// A Controller is one slurmctld as slurmrestd sees it.
type Controller struct {
	Hostname string
	// Responding is true if it answered slurmrestd.
	Responding bool
	// Primary is true if it is the primary, rather than a backup.
	Primary bool
	// Status is Slurm's result of the ping, "No error" or the error; empty before v0.0.45.
	Status string
}

// Ping asks slurmrestd to ping every slurmctld of the cluster. It is cheap, answers at once while slurmctld is down (lists take ten
// seconds then), and does not check the token. A token that slurmctld does not accept shows up as a Controller that does not
// respond, on 26.05 with Status "Protocol authentication error".
func (c *Client) Ping(ctx context.Context) ([]Controller, error) {
	list, _, err := c.Controllers(ctx)
	return list, err
}

// Controllers is Ping for a caller that also wants slurmrestd's Meta.
func (c *Client) Controllers(ctx context.Context) ([]Controller, Meta, error) {
	var list []Controller
	var meta Meta
	_, err := c.do(ctx, call{
		method: http.MethodGet, path: "ping/", repeatable: true,
		decode: func(r *reader) ([]slurmError, error) {
			var errs []slurmError
			var err error
			list, meta, errs, err = decodePings(r)
			return errs, err
		},
	})
	if err != nil {
		return nil, Meta{}, fmt.Errorf("pinging slurmctld through %s: %w", c, err)
	}
	return list, meta, nil
}

func decodePings(r *reader) ([]Controller, Meta, []slurmError, error) {
	var a answer
	var list []Controller
	found := false
	err := a.decode(r, func(key string) bool {
		if key != "pings" || r.peek() == 'n' {
			return false
		}
		found, list = true, nil
		for ok := r.open('['); ok && r.admit(len(list), maxEntries, "slurmctlds"); ok = r.more('[') {
			list = append(list, r.controller())
		}
		return true
	})
	switch {
	case err != nil:
		return nil, Meta{}, nil, err
	case len(a.errors) > 0:
		return nil, Meta{}, a.errors, nil
	case !found:
		return nil, Meta{}, nil, errNoList
	}
	return list, a.meta, nil, nil
}

// controller reads both forms: v0.0.41 has pinged and mode, v0.0.45 has responding, primary and status, and the versions
// between have all but status.
func (r *reader) controller() Controller {
	var c Controller
	for ok := r.open('{'); ok; ok = r.more('{') {
		switch string(r.key()) {
		case "hostname":
			c.Hostname = r.shared()
		case "responding":
			c.Responding = r.bool()
		case "pinged":
			c.Responding = string(r.bytes()) == "UP"
		case "primary":
			c.Primary = r.bool()
		case "mode":
			c.Primary = string(r.bytes()) == "primary"
		case "status":
			c.Status = oneLine(r.shared())
		default:
			r.skip()
		}
	}
	return c
}

// Reconfigure makes slurmctld and all slurmds read their configuration again, as "scontrol reconfigure" does. It is a
// GET in Slurm's interface but a write in effect, and never repeated here.
func (c *Client) Reconfigure(ctx context.Context) error {
	if _, err := c.do(ctx, call{method: http.MethodGet, path: "reconfigure/", decode: decodeResult}); err != nil {
		return fmt.Errorf("reconfiguring Slurm through %s: %w", c, err)
	}
	return nil
}
