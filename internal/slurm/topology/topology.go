// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package topology reads where a node is in the topologies of a cluster, as slurmd's --conf Topology= and the REST API's topology_str
// write it. For each topology of topology.yaml that is the switch of a tree, or the block, on which the node hangs.
package topology

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Place is where a node is in one topology.
type Place struct {
	// Topology is its name in topology.yaml.
	Topology string
	// Units lead to the node: the name of a block, or those of the switches of a tree from the top down, of which all but
	// the last may be left out.
	Units []string
}

// A Spec is where a node is in each topology, in the order of its text.
type Spec []Place

// maxSpec bounds a spec in bytes.
const maxSpec = 4096

// Parse reads a spec such as "topo-switch:s2,topo-block:b2" or "topo-switch:spine1:leaf3". Blanks around the parts do not
// count. An empty text is an empty spec: a node that is in no topology.
func Parse(text string) (Spec, error) {
	if len(text) > maxSpec {
		return nil, fmt.Errorf("the topology is longer than %d bytes", maxSpec)
	}
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	var spec Spec
	for part := range strings.SplitSeq(text, ",") {
		name, path, found := strings.Cut(strings.TrimSpace(part), ":")
		if !found {
			return nil, fmt.Errorf("%q is not of the form topology:unit", part)
		}
		place := Place{Topology: name, Units: strings.Split(path, ":")}
		for _, n := range append([]string{place.Topology}, place.Units...) {
			if err := checkName(n); err != nil {
				return nil, fmt.Errorf("in %q: %w", part, err)
			}
		}
		if slices.ContainsFunc(spec, func(p Place) bool { return p.Topology == place.Topology }) {
			return nil, fmt.Errorf("topology %q is named twice", place.Topology)
		}
		spec = append(spec, place)
	}
	return spec, nil
}

// checkName accepts what can be a name in topology.yaml and stands for nothing else in a spec, a hostlist or a command.
func checkName(name string) error {
	if name == "" {
		return errors.New("a name is empty")
	}
	for _, r := range name {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("-_.", r):
		default:
			return fmt.Errorf("the name %q has the character %q; only letters, digits and . _ - may be there", name, r)
		}
	}
	return nil
}

// String is the spec in the form that Slurm takes.
func (s Spec) String() string {
	parts := make([]string, 0, len(s))
	for _, p := range s {
		parts = append(parts, p.Topology+":"+strings.Join(p.Units, ":"))
	}
	return strings.Join(parts, ",")
}

// Same reports whether two specs put a node into the same places. The order does not count, and neither do switches above
// the last one, which Slurm may leave out.
func (s Spec) Same(o Spec) bool {
	if len(s) != len(o) {
		return false
	}
	for _, p := range s {
		if !slices.ContainsFunc(o, p.same) {
			return false
		}
	}
	return true
}

func (p Place) same(o Place) bool {
	return p.Topology == o.Topology && p.Units[len(p.Units)-1] == o.Units[len(o.Units)-1]
}
