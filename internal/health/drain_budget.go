// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

// DrainLimit is how many workers of a NodeSet checks may take out of service at the same time: a number, or a share of all its workers.
// The zero value is one worker.
type DrainLimit struct {
	// Number is the number of workers, or of percent.
	Number int
	// Percent is true if Number is a percentage.
	Percent bool
}

// DefaultDrainLimit is the limit unless --max-nodes-drained-by-checks is set.
const DefaultDrainLimit = "10%"

// ParseDrainLimit reads "10%" or "3". A limit of zero is refused: to have no drains by checks, turn off the checks.
func ParseDrainLimit(text string) (DrainLimit, error) {
	number, percent := strings.CutSuffix(text, "%")
	n, err := strconv.Atoi(number)
	switch {
	case err != nil || strings.HasPrefix(number, "+"):
		return DrainLimit{}, fmt.Errorf("%q is neither a number of nodes nor a percentage such as %s", text, DefaultDrainLimit)
	case n < 1:
		return DrainLimit{}, fmt.Errorf("%q: it must be at least 1, and at least 1 %%", text)
	case percent && n > 100:
		return DrainLimit{}, fmt.Errorf("%q: it must be at most 100 %%", text)
	}
	return DrainLimit{Number: n, Percent: percent}, nil
}

// String returns the limit as ParseDrainLimit reads it.
func (l DrainLimit) String() string {
	if l.Percent {
		return strconv.Itoa(l.Number) + "%"
	}
	return strconv.Itoa(l.Number)
}

// Of returns the limit for a number of workers: at least one, and of a percentage what is whole.
func (l DrainLimit) Of(workers int) int {
	if l.Percent {
		return max(1, workers*l.Number/100)
	}
	return max(1, l.Number)
}

// OutForCheck reports whether a check has taken a Slurm node out of service: it is drained, and the reason is a check's. Maintenance,
// cordons and persons have other reasons.
func OutForCheck(state node.State, reason node.Reason) bool {
	return state.Drain() == node.Yes && reason.OfCheck()
}

// DrainBudget is what is known of one NodeSet when checks want to take workers out of service.
type DrainBudget struct {
	Limit DrainLimit
	// Workers is how many workers the NodeSet has.
	Workers int
	// Out are the Slurm nodes that are out of service for checks: those that Slurm shows so, and those that may go and that it does not
	// show yet.
	Out []string
	// Wanted are the Slurm nodes that checks want out of service. Those that are out already may stay.
	Wanted []string
}

// DrainVerdict is which nodes a check may drain now.
type DrainVerdict struct {
	// Go are the wanted nodes that may be drained, or are drained already. Wait are the others. Both are in the order of host lists.
	Go, Wait []string
	// Out is how many workers are out of service for checks once Go is drained, and Limit how many may be.
	Out, Limit int
}

// Decide lets as many of the wanted nodes go as the limit leaves, in the order of their names: all checks see the same order. Nodes that
// are out never come back because of it, also when they are more than the limit: others drain nodes, too.
func (b DrainBudget) Decide() DrainVerdict {
	out := map[string]struct{}{}
	for _, name := range b.Out {
		out[name] = struct{}{}
	}
	wanted := map[string]struct{}{}
	for _, name := range b.Wanted {
		wanted[name] = struct{}{}
	}
	d := DrainVerdict{Limit: b.Limit.Of(b.Workers)}
	for _, name := range slices.SortedFunc(maps.Keys(wanted), hostlist.Compare) {
		if _, is := out[name]; !is && len(out) >= d.Limit {
			d.Wait = append(d.Wait, name)
			continue
		}
		out[name] = struct{}{}
		d.Go = append(d.Go, name)
	}
	d.Out = len(out)
	return d
}
