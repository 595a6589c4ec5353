// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coxswain-hpc/coxswain/internal/operator"
)

// meanings returns the kinds that a name in --controllers switches on, the one that "-name" switches off first: the kinds, "slurmcluster"
// with all that a SlurmCluster is composed of, which need their controllers; and the names of the two managers of Soperator 5.0
// (docs/contributors/predecessors/soperator-installation.md#names-of-controllers), whose parts are no controllers of their own here.
func meanings() map[string][]string {
	out := map[string][]string{}
	for _, kind := range operator.Kinds() {
		out[kind] = []string{kind}
	}
	composed := []string{"slurmcluster", "accounting", "controller", "loginset", "nodeset", "restapi", "token"}
	out["slurmcluster"], out["cluster"] = composed, composed
	for _, part := range []string{
		"rollingupdate", "topology", "slurmapiclients", "slurmnodes", "k8snodes", "activecheck", "activecheckjob", "serviceaccount", "podephemeralstoragecheck",
	} {
		out[part] = nil
	}
	return out
}

// enabled returns the controllers to run. What is left out by its name is left out wherever that stands in the list.
func (o *options) enabled() (map[string]bool, error) {
	known, on := meanings(), map[string]bool{}
	all := len(o.controllers) == 0 || slices.Contains(o.controllers, "*")
	for _, kind := range operator.Kinds() {
		on[kind] = all
	}
	var off []string
	for _, entry := range o.controllers {
		name, out := strings.CutPrefix(strings.ToLower(entry), "-")
		kinds, ok := known[name]
		switch {
		case name == "*":
		case !ok:
			return nil, fmt.Errorf("--controllers has %q, which is not a controller: use %s", entry, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		case out:
			off = append(off, kinds[:min(1, len(kinds))]...)
		default:
			for _, kind := range kinds {
				on[kind] = true
			}
		}
	}
	for _, kind := range off {
		on[kind] = false
	}
	return on, nil
}
