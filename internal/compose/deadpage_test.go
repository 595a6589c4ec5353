// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// deadPage is docs/users/without-effect.md: for each kind all leaves of its spec, and whether they are without effect.
type deadPage map[string]map[string]bool

// markdown is the text of the page.
func (p deadPage) markdown() string {
	var out strings.Builder
	out.WriteString(`# Fields of slurm.nebius.ai without effect

Such fields are accepted, so that existing manifests can be applied. As soon as one has another value than its default, condition
` + "`SpecEffective`" + ` and a warning of the webhook name it. A field stands here for all below it. ` + "[What stands in their\nplace](slurmcluster-effect.md)" + ` says why, and names those that have an effect under conditions only.

` + "`TestEveryLeafIsEffectiveOrTold`" + ` tries every field and compares this page with what it finds; ` + "`go test ./internal/compose\n-run EveryLeaf -update`" + ` writes it anew.
`)
	for _, kind := range slices.Sorted(maps.Keys(p)) {
		fmt.Fprintf(&out, "\n## %s\n\n", kind)
		for _, path := range p.shortest(kind) {
			fmt.Fprintf(&out, "* `%s`\n", path)
		}
	}
	return out.String()
}

// shortest are the paths without effect, in place of all fields of an object the object.
func (p deadPage) shortest(kind string) []string {
	alive := map[string]bool{}
	for path, dead := range p[kind] {
		for above := path; !dead && above != ""; above = parent(above) {
			alive[above] = true
		}
	}
	out := map[string]bool{}
	for path, dead := range p[kind] {
		if !dead {
			continue
		}
		for above := parent(path); above != "" && !alive[above]; above = parent(above) {
			path = above
		}
		out[strings.TrimSuffix(path, "[]")] = true
	}
	return slices.Sorted(maps.Keys(out))
}

// parent is the path of the object that a field is in.
func parent(path string) string { return path[:max(strings.LastIndex(path, "."), 0)] }
