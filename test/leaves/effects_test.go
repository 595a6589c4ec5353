// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package leaves_test

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/coxswain-hpc/coxswain/internal/testing/golden"
)

// digests show that something has changed, but not what.
var digests = regexp.MustCompile(`\b[0-9a-f]{64}\b`)

// expectEffects compares what each leaf changes in what is rendered with testdata/KIND.effects.txt, which is there to be read
// beside docs/contributors/predecessors/slinky-objects.md. That a change ends in what a fresh object ends in does not say that it means the
// right thing.
func expectEffects(t *testing.T, kind, namespace string, table scene, paths []string, before, after world) {
	t.Helper()
	got := []string{fmt.Sprintf("What each leaf of kind %s changes in the objects that are made of it, from the first to the second value in %s.yaml.\n"+
		"N is the name of the object. ~ is a line that holds another digest; a line without a value is a whole object, or a large part of one.\n", kind, kind)}
	for i, path := range paths {
		l, name := table.Leaves[path], sceneName(i)
		var text strings.Builder
		fmt.Fprintf(&text, "%s: %s -> %s\n", path, inline(l.A), inline(l.B))
		if l.Dead+l.Acts != "" {
			fmt.Fprintf(&text, "  nothing: %s\n", l.Dead+l.Acts)
		}
		for _, line := range effects(render(t, before.of(name), after.of(name)), render(t, after.of(name), before.of(name))) {
			line = strings.ReplaceAll(strings.ReplaceAll(line, name, "N"), namespace, "NAMESPACE")
			fmt.Fprintf(&text, "  %s\n", line)
		}
		got = append(got, text.String())
	}
	file := kind + ".effects.txt"
	if len(paths) == len(table.Leaves) {
		golden.Check(t, file, []byte(strings.Join(got, "\n")))
		return
	}
	all, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	// For the others the file has what a run over all leaves has seen.
	known := strings.Split(string(all)+"\n", "\n\n")
	for _, effect := range got {
		if !slices.Contains(known, strings.TrimSuffix(effect, "\n")) {
			t.Errorf("%s lacks this; write it with -update and without COXSWAIN_LEAVES_SHARE if it is meant:\n%s", file, effect)
		}
	}
}

func inline(value any) string {
	if value == nil {
		return "nothing"
	}
	text, err := yaml.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", "; ")
}

// render turns objects into lines, each of which makes sense by itself. An object that the other world lacks is one line.
func render(t *testing.T, objects, other map[string]string) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	for key, text := range withoutOurs(objects) {
		if _, both := other[key]; !both {
			out[key] = true
			continue
		}
		var content map[string]any
		if err := yaml.Unmarshal([]byte(text), &content); err != nil {
			t.Fatal(err)
		}
		if data, ok := content["data"].(map[string]any); ok && content["kind"] == "Secret" {
			for name, value := range data {
				if decoded, err := base64.StdEncoding.DecodeString(fmt.Sprint(value)); err == nil {
					data[name] = string(decoded)
				}
			}
		}
		flatten(key+" ", content, out)
	}
	return out
}

func flatten(prefix string, value any, out map[string]bool) {
	switch v := value.(type) {
	case map[string]any:
		for name, item := range v {
			flatten(strings.TrimSuffix(prefix, " ")+separator(prefix)+name, item, out)
		}
	case []any:
		for i, item := range v {
			flatten(prefix+"["+identity(i, item)+"]", item, out)
		}
	case string:
		for line := range strings.Lines(v) {
			out[prefix+": "+strings.TrimSuffix(line, "\n")] = true
		}
		if v == "" {
			out[prefix+": "] = true
		}
	default:
		out[prefix+": "+fmt.Sprint(v)] = true
	}
}

func separator(prefix string) string {
	if strings.HasSuffix(prefix, " ") {
		return " "
	}
	return "."
}

// identity returns what an item of a list is known by, so that one more does not move the others.
func identity(i int, item any) string {
	fields, _ := item.(map[string]any)
	for _, name := range []string{"mountPath", "name", "key", "type"} {
		if value, ok := fields[name]; ok {
			return fmt.Sprint(value)
		}
	}
	return fmt.Sprint(i)
}

// effects returns the lines that differ, in the order of what they are about.
func effects(before, after map[string]bool) []string {
	gone, come := only(before, after), only(after, before)
	type effect struct{ sign, line string }
	var all []effect
	for line := range gone {
		if come[line] {
			all = append(all, effect{"~", line})
			delete(come, line)
		} else {
			all = append(all, effect{"-", line})
		}
	}
	for line := range come {
		all = append(all, effect{"+", line})
	}
	slices.SortFunc(all, func(a, b effect) int {
		return strings.Compare(subject(a.line)+" "+flip(a.sign)+a.line, subject(b.line)+" "+flip(b.sign)+b.line)
	})
	out := make([]string, len(all))
	for i, e := range all {
		out[i] = e.sign + " " + e.line
	}
	return out
}

// only are the lines of one world that another lacks, without digests. What is new as a whole, such as a container, is in
// one line when it has many.
func only(world, other map[string]bool) map[string]bool {
	parts := map[string]int{}
	for line := range other {
		for _, part := range partsOf(line) {
			parts[part] = -1
		}
	}
	for line := range world {
		for _, part := range partsOf(line) {
			if parts[part] >= 0 {
				parts[part]++
			}
		}
	}
	const many = 4
	out := map[string]bool{}
	for line := range world {
		if other[line] {
			continue
		}
		if i := slices.IndexFunc(partsOf(line), func(part string) bool { return parts[part] > many }); i >= 0 {
			line = partsOf(line)[i]
		}
		out[digests.ReplaceAllString(line, "(digest)")] = true
	}
	return out
}

// partsOf returns the items of lists that a line is in, the outermost first.
func partsOf(line string) []string {
	var out []string
	where := subject(line)
	for i := range where {
		if where[i] == ']' {
			out = append(out, where[:i+1])
		}
	}
	return out
}

// subject returns a line without its value.
func subject(line string) string {
	before, _, _ := strings.Cut(line, ": ")
	return before
}

// flip puts what goes before what comes.
func flip(sign string) string {
	if sign == "-" {
		return "1"
	}
	return "2"
}
