// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/coxswain-hpc/coxswain/dev/internal/state"
)

// domainName is a name with a domain, as clouds give to nodes. The names of
// the cluster's other processes have no dot, so none of them is taken.
var domainName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+$`)

// maxName is the longest name that the label kubernetes.io/hostname takes.
const maxName = 63

func checkNames(names []string) error {
	for i, name := range names {
		if !domainName.MatchString(name) || len(name) > maxName {
			return fmt.Errorf("--node-names %q: want a name with a domain, such as ip-10-0-0-1.eu-west-1.compute.internal, of %d characters at most", name, maxName)
		}
		if slices.Contains(names[:i], name) {
			return fmt.Errorf("--node-names %q: it is there twice", name)
		}
	}
	return nil
}

// withNames gives the highest numbers to the names that no node has yet. The
// first nodes, as many as there are, keep theirs.
func withNames(s state.State, there int, names []string) (state.State, error) {
	had := slices.Collect(maps.Values(s.Names))
	missing := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(had, name) })
	if len(missing) == 0 {
		return s, nil
	}
	s.Nodes = max(s.Nodes, there+len(missing))
	if s.Nodes > state.MaxNodes {
		return s, fmt.Errorf("--node-names: with %d more nodes there are more than %d", len(missing), state.MaxNodes)
	}
	// The old state stays as it was until the new one is saved.
	all := map[int]string{}
	maps.Copy(all, s.Names)
	for i, name := range missing {
		all[s.Nodes-len(missing)+i+1] = name
	}
	s.Names = all
	return s, nil
}
