// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package powerrequest changes which nodes NodeSetPowerStates want to run, and waits for such changes. Nodes are named as Slurm
// names them to ResumeProgram and SuspendProgram: by a host list (slurm.conf(5)).
package powerrequest

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
)

// maxNodes bounds what a host list may stand for; it is more than a Slurm cluster has.
const maxNodes = 65536

// Group is nodes of one NodeSet: its name, and their ordinals in order, each once.
type Group struct {
	NodeSet  string
	Ordinals []int32
}

// names returns the nodes of the group as a host list.
func (g Group) names(ordinals []int32) string {
	names := make([]string, len(ordinals))
	for i, ordinal := range ordinals {
		names[i] = fmt.Sprintf("%s-%d", g.NodeSet, ordinal)
	}
	return hostlist.Compress(names)
}

// Split expands a host list and sorts its nodes by the NodeSets whose workers have such names: <NodeSet>-<ordinal>. Others are the
// nodes whose names are not of that form.
func Split(list string) (groups []Group, others []string, err error) {
	names, err := hostlist.Expand(list, maxNodes)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the host list %q: %w", list, err)
	}
	bySet := map[string][]int32{}
	for _, name := range names {
		if set, ordinal, ok := Worker(name); ok {
			bySet[set] = append(bySet[set], ordinal)
		} else {
			others = append(others, name)
		}
	}
	for set, ordinals := range bySet {
		slices.Sort(ordinals)
		groups = append(groups, Group{NodeSet: set, Ordinals: slices.Compact(ordinals)})
	}
	slices.SortFunc(groups, func(a, b Group) int { return strings.Compare(a.NodeSet, b.NodeSet) })
	return groups, others, nil
}

// Worker takes the name of a worker's node apart.
func Worker(name string) (set string, ordinal int32, ok bool) {
	at := strings.LastIndexByte(name, '-')
	if at <= 0 {
		return "", 0, false
	}
	number := name[at+1:]
	n, err := strconv.ParseUint(number, 10, 31)
	if err != nil || n > math.MaxInt32 || strconv.FormatUint(n, 10) != number {
		return "", 0, false
	}
	return name[:at], int32(n), true
}
