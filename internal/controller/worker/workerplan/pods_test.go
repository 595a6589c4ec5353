// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package workerplan_test

import (
	"fmt"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// aPod returns a running, ready worker of revision new, changed by options.
func aPod(ordinal int, options ...func(*workerpod.Pod)) workerpod.Pod {
	p := workerpod.Pod{
		Name: fmt.Sprintf("w-%d", ordinal), Ordinal: ordinal, Revision: "new", Phase: "Running",
		Scheduled: true, Ready: true, ReadySince: noon.Add(-time.Hour), Created: noon.Add(-time.Hour),
	}
	for _, o := range options {
		o(&p)
	}
	return p
}

func pending(p *workerpod.Pod)     { p.Phase, p.Ready, p.Scheduled = "Pending", false, false }
func scheduled(p *workerpod.Pod)   { p.Phase, p.Ready = "Pending", false }
func unready(p *workerpod.Pod)     { p.Ready = false }
func terminating(p *workerpod.Pod) { p.Terminating = true }
func cordoned(p *workerpod.Pod)    { p.Cordoned = true }
func scaledIn(p *workerpod.Pod)    { p.Retired, p.Cordoned = workerpod.ScaleIn, true }
func updating(p *workerpod.Pod)    { p.Retired, p.Cordoned = workerpod.Update, true }

func readyFor(d time.Duration) func(*workerpod.Pod) {
	return func(p *workerpod.Pod) { p.ReadySince = noon.Add(-d) }
}

func createdBefore(d time.Duration) func(*workerpod.Pod) {
	return func(p *workerpod.Pod) { p.Created = noon.Add(-d) }
}
