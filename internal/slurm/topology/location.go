// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package topology

import "strconv"

// A Location is where a machine is in the network, by names that the builder of the network has given. The zero value is a machine
// whose place is not known.
type Location struct {
	// Block is the block that it belongs to; empty for none.
	Block string
	// Switches lead away from the machine: first the one that it hangs on.
	Switches []string
}

// Locate reads the labels <prefix>/tier-0, the block, and <prefix>/tier-1, tier-2 and so on, the switches from the nearest up. The
// first missing tier ends the way: what is above it is unknown.
func Locate(labels map[string]string, prefix string) Location {
	at := Location{Block: labels[prefix+"/tier-0"]}
	for tier := 1; ; tier++ {
		name := labels[prefix+"/tier-"+strconv.Itoa(tier)]
		if name == "" {
			return at
		}
		at.Switches = append(at.Switches, name)
	}
}

// A Node is a node of Slurm, whether it is there already or not.
type Node struct {
	Name string
	// Fabric is the network that it belongs to. Nothing leads from one fabric to another.
	Fabric   string
	Location Location
}
