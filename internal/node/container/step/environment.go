// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"maps"
	"slices"
	"strings"
)

// Environment is a set of variables.
type Environment map[string]string

// ParseEnvironment reads NAME=VALUE. What has no name or no value is left out; the first of two with one name counts, as for getenv(3).
func ParseEnvironment(variables []string) Environment {
	out := Environment{}
	for _, v := range variables {
		name, value, ok := strings.Cut(v, "=")
		if _, known := out[name]; ok && name != "" && !known {
			out[name] = value
		}
	}
	return out
}

// ofNode returns variables about the node's own file system or language, which mean nothing in a container.
func ofNode() []string { return []string{"LANG", "LANGUAGE", "LC_ALL"} }

// Overlay returns what to change in the job's environment for a container: the image's variables win, but for those that --container-env
// names. HOME is the home directory in the container.
func Overlay(job, image Environment, keep []string, home string) (set, unset []string) {
	kept := func(name string) bool { return slices.Contains(keep, name) && hasName(job, name) }
	changed := maps.Clone(image)
	changed["HOME"] = home
	for _, name := range slices.Sorted(maps.Keys(changed)) {
		if was, has := job[name]; !kept(name) && (!has || was != changed[name]) {
			set = append(set, name+"="+changed[name])
		}
	}
	for _, name := range ofNode() {
		if hasName(job, name) && !hasName(image, name) && !slices.Contains(keep, name) {
			unset = append(unset, name)
		}
	}
	return set, unset
}

func hasName(e Environment, name string) bool {
	_, ok := e[name]
	return ok
}
