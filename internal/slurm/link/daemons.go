// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

// Slurmctld is the Node of a Change about the slurmctlds. No node has that name.
const Slurmctld = "/slurmctld"

// Daemons is the last answer of the slurmctlds of a cluster.
type Daemons struct {
	// Asked is when they were asked, by the link's clock; zero when they never were.
	Asked time.Time
	// Controllers are all slurmctlds, the primary first, as slurmrestd reaches them. Nil while slurmrestd does not answer.
	Controllers []rest.Controller
	// Release is that of slurmctld where it reports it, else that of slurmrestd; empty while neither answers.
	Release string
	// Parameters are the SlurmctldParameters that slurmctld has loaded, if Loaded.
	Parameters []string
	Loaded     bool
	// Why is why Parameters are not known, in one line.
	Why string
}

// equal compares all but the time.
func (d Daemons) equal(other Daemons) bool {
	return slices.Equal(d.Controllers, other.Controllers) && d.Release == other.Release && d.Loaded == other.Loaded &&
		slices.Equal(d.Parameters, other.Parameters) && d.Why == other.Why
}

// Interest is what a caller needs to know of the slurmctlds.
type Interest struct {
	// Settled reports whether an answer leaves nothing to wait for. Until then slurmctld is asked twice a second.
	Settled func(Daemons) bool
	// Watch goes on asking which of them answer, as often as the nodes are polled, for a cluster with backups.
	Watch bool
}

// ctldTimeout bounds a request to the slurmctlds.
const ctldTimeout = 10 * time.Second

// askSlurmctlds pings the slurmctlds and asks the active one what it has loaded. With an error nothing is known.
func askSlurmctlds(ctx context.Context, client *rest.Client, now time.Time) (Daemons, error) {
	limited, cancel := context.WithTimeout(ctx, ctldTimeout)
	defer cancel()
	d := Daemons{Asked: now}
	controllers, meta, err := client.Controllers(limited)
	if err != nil {
		d.Why = "slurmrestd does not answer"
		return d, err
	}
	d.Controllers, d.Release = controllers, meta.Release
	if !slices.ContainsFunc(controllers, func(c rest.Controller) bool { return c.Responding }) {
		d.Why = "no slurmctld answers"
		return d, errors.New(d.Why)
	}
	conf, err := client.Conf(limited)
	switch {
	case errors.Is(err, rest.Refused):
		d.Why = "slurmrestd " + meta.Release + " does not tell what slurmctld has loaded"
		return d, nil
	case err != nil:
		d.Why = "slurmctld does not say what it has loaded"
		return d, err
	}
	d.Release, d.Parameters, d.Loaded = cmp.Or(conf.Release, d.Release), conf.SlurmctldParameters, true
	return d, nil
}
