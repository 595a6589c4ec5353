// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"fmt"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/nodeset"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// aPod returns a running, ready worker of revision new, changed by options.
func aPod(ordinal int, options ...func(*nodeset.Pod)) nodeset.Pod {
	p := nodeset.Pod{
		Name: fmt.Sprintf("w-%d", ordinal), Ordinal: ordinal, Revision: "new", Phase: "Running",
		Scheduled: true, Ready: true, ReadySince: noon.Add(-time.Hour), Created: noon.Add(-time.Hour),
	}
	for _, o := range options {
		o(&p)
	}
	return p
}

func pending(p *nodeset.Pod)     { p.Phase, p.Ready, p.Scheduled = "Pending", false, false }
func scheduled(p *nodeset.Pod)   { p.Phase, p.Ready = "Pending", false }
func unready(p *nodeset.Pod)     { p.Ready = false }
func terminating(p *nodeset.Pod) { p.Terminating = true }
func cordoned(p *nodeset.Pod)    { p.Cordoned = true }
func scaledIn(p *nodeset.Pod)    { p.Retired, p.Cordoned = nodeset.ScaleIn, true }
func updating(p *nodeset.Pod)    { p.Retired, p.Cordoned = nodeset.Update, true }

func readyFor(d time.Duration) func(*nodeset.Pod) {
	return func(p *nodeset.Pod) { p.ReadySince = noon.Add(-d) }
}

func createdBefore(d time.Duration) func(*nodeset.Pod) {
	return func(p *nodeset.Pod) { p.Created = noon.Add(-d) }
}
