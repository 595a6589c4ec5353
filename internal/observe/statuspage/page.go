// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package statuspage

import (
	"fmt"
	"strings"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
)

// Page is what the page of a cluster shows.
type Page struct {
	// Title is namespace and name of the Controller.
	Title string
	Head  Head
	// Concerns are the conditions that are not as they should be, Fine all others.
	Concerns []Condition
	Fine     []Condition
	// Legend counts the nodes by state.
	Legend []Count
	Sets   []Set
	Jobs   Jobs
	Plan   Plan
	Ledger []Entry
}

// Head is which cluster it is and how far the states of its nodes may be relied on.
type Head struct {
	Title string
	// Slurm is Slurm's name of the cluster and the release; empty if unknown.
	Slurm string
	// Trust is Fresh, Stale, Suspect or "Not connected".
	Trust string
	// Class is the class of the element with the trust.
	Class string
	// Since is since when the trust is what it is, Age how old the states are, Why why they are not fresh.
	Since string
	Age   string
	Why   string
	// Waiting is true if another replica acts.
	Waiting bool
}

// Count is a number of nodes in one state.
type Count struct {
	State state
	Nodes int
}

// Plan is what is going to happen to workers.
type Plan struct {
	Steps []Step
	// More is the number of steps that no status lists.
	More int
}

// Step is a step of the plan of a NodeSet.
type Step struct {
	NodeSet string
	Pod     string
	Action  string
	Cause   string
	// Waits is what the step waits for.
	Waits string
	// DryRun is true if it is not going to be done.
	DryRun bool
}

// Entry is a line of the ledger.
type Entry struct {
	NodeSet string
	Reason  string
	Count   int32
	Nodes   string
	Since   string
}

// freshAge is the age up to which the page does not show how old the states are: Slurm is asked every second, and the page does not
// change while nothing happens.
const freshAge = 10 * time.Second

// NewPage makes the page of a cluster.
func NewPage(f Facts) Page {
	p := Page{Title: f.Cluster.String(), Head: head(f)}
	p.Concerns, p.Fine = sortConditions(f.Objects)
	p.Sets, p.Jobs = sets(f), jobs(f)
	total := make([]int, states)
	for _, s := range p.Sets {
		for _, c := range s.Counts {
			total[c.State] += c.Nodes
		}
	}
	for s, n := range total {
		p.Legend = append(p.Legend, Count{State: state(s), Nodes: n})
	}
	for _, set := range f.NodeSets {
		for _, step := range set.Status.Plan {
			p.Plan.Steps = append(p.Plan.Steps, Step{
				NodeSet: set.Name, Pod: step.Pod, Action: step.Action, Cause: step.Cause, Waits: step.Message, DryRun: set.DryRun,
			})
		}
		p.Plan.More += max(0, int(set.Status.Planned)-len(set.Status.Plan))
		for _, out := range set.Status.OutOfService {
			e := Entry{NodeSet: set.Name, Reason: out.Reason, Count: out.Count, Nodes: out.Nodes}
			if out.Since != nil {
				e.Since = stamp(out.Since.Time)
			}
			p.Ledger = append(p.Ledger, e)
		}
	}
	return p
}

func head(f Facts) Head {
	h := Head{Title: f.Cluster.String(), Waiting: f.Waiting, Trust: "Not connected", Class: "bad"}
	if !f.Slurm.Connected {
		return h
	}
	h.Trust, h.Since, h.Why, h.Age = string(f.Slurm.Trust), stamp(f.Slurm.Since), f.Slurm.Why, age(f.Now, f.Slurm.Taken, freshAge)
	if f.Slurm.Name != "" {
		h.Slurm = strings.TrimSpace(f.Slurm.Name + ", Slurm " + f.Slurm.Release)
	}
	if f.Slurm.Trust == slurmcache.Fresh {
		h.Class = "good"
	}
	return h
}

// age returns how old an answer of Slurm is, the less precisely the older it is. Below fresh it returns no more than that.
func age(now, taken time.Time, fresh time.Duration) string {
	if taken.IsZero() {
		return "Slurm has not answered yet"
	}
	switch d := now.Sub(taken); {
	case d < fresh:
		return fmt.Sprintf("less than %.0f s old", fresh.Seconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s old", int(d.Truncate(5*time.Second).Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min old", int(d.Minutes()))
	default:
		return fmt.Sprintf("%d h old", int(d.Hours()))
	}
}
