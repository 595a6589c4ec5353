// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"slices"
	"strings"
)

// splitItems cuts the value of a set into its items.
func splitItems(value string) []string {
	var items []string
	for item := range strings.SplitSeq(value, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items
}

func joinItems(items []string) string { return strings.Join(items, ",") }

// union adds items to a set. Present items keep their place. An item with the same name takes the place of the old one:
// jwt_key=/b that of jwt_key=/a, CR_Core_Memory that of CR_CPU. task/none and all other task plugins exclude each other,
// and the added ones win.
func union(key string, have, add []string) []string {
	have = slices.Clone(have)
	if strings.EqualFold(key, "TaskPlugin") && len(add) > 0 {
		if slices.ContainsFunc(add, isNone) {
			have = nil
		}
		have = slices.DeleteFunc(have, isNone)
	}
	for _, item := range add {
		i := slices.IndexFunc(have, func(old string) bool { return itemName(key, old) == itemName(key, item) })
		switch {
		case i < 0:
			have = append(have, item)
		case !strings.EqualFold(have[i], item) || strings.Contains(item, "="):
			have[i] = item
		}
	}
	return have
}

// isNone recognises the task plugin that does nothing.
func isNone(item string) bool {
	return strings.EqualFold(item, "task/none") || strings.EqualFold(item, "none")
}

// itemName is equal for two items of a set that exclude each other. It is the part before "=", in lower case, or
// the choice that both of them make.
func itemName(key, item string) string {
	name, _, _ := strings.Cut(strings.ToLower(item), "=")
	switch strings.ToLower(key) {
	case "selecttypeparameters":
		// slurm.conf(5): the consumable resource is one of these.
		switch name {
		case "cr_cpu", "cr_cpu_memory", "cr_core", "cr_core_memory", "cr_socket", "cr_socket_memory", "cr_memory":
			return "cr_"
		}
	case "taskpluginparam":
		// slurm.conf(5): mutually exclusive.
		switch name {
		case "none", "sockets", "cores", "threads":
			return "cpu-bind"
		}
	}
	return name
}
