// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"fmt"
	"net/http"
	"slices"
)

// Conf is what slurmctld reports about the configuration that it has loaded.
type Conf struct {
	// Release is that of slurmctld, such as "26.05.5".
	Release string
	// SlurmctldParameters are the items of that key in slurm.conf, including those unknown to Slurm.
	SlurmctldParameters []string
}

// Conf asks for the configuration that slurmctld has loaded; from v0.0.45 (Slurm 26.05) on, before it is Refused.
func (c *Client) Conf(ctx context.Context) (Conf, error) {
	var conf Conf
	err := c.needs(ctx, "v0.0.45", "tell what slurmctld has loaded")
	if err == nil {
		_, err = c.do(ctx, call{
			method: http.MethodGet, path: "conf", repeatable: true,
			decode: func(r *reader) ([]slurmError, error) {
				var errs []slurmError
				var err error
				conf, errs, err = decodeConf(r)
				return errs, err
			},
		})
	}
	if err != nil {
		return Conf{}, fmt.Errorf("asking for the configuration of slurmctld through %s: %w", c, err)
	}
	return conf, nil
}

func decodeConf(r *reader) (Conf, []slurmError, error) {
	var a answer
	var conf Conf
	found := false
	err := a.decode(r, func(key string) bool {
		switch {
		case key == "slurm_conf" && r.peek() != 'n':
			found = true
			for ok := r.open('{'); ok; ok = r.more('{') {
				if string(r.key()) == "SlurmctldParameters" {
					conf.SlurmctldParameters = slices.Clone(r.list())
				} else {
					r.skip()
				}
			}
		case key == "slurm_conf_meta" && r.peek() != 'n':
			for ok := r.open('{'); ok; ok = r.more('{') {
				if string(r.key()) == "SLURM_VERSION" {
					conf.Release = oneLine(string(r.bytes()))
				} else {
					r.skip()
				}
			}
		default:
			return false
		}
		return true
	})
	switch {
	case err != nil:
		return Conf{}, nil, err
	case len(a.errors) > 0:
		return Conf{}, a.errors, nil
	case !found:
		return Conf{}, nil, errNoList
	}
	return conf, nil, nil
}
