// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
	"github.com/coxswain-hpc/coxswain/internal/testing/kubesim"

	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

// outcome is what a run of a scenario came to.
type outcome struct {
	// state is every field of every object and Slurm node at the end, but for what time and chance decide.
	state map[string]string
	// counts are pods created and deleted, nodes drained and undrained, by name.
	counts     map[string]int
	calls      []call
	took       time.Duration
	violations []string
}

// chance is what differs between two runs of anything.
func chance(path string) bool {
	for _, part := range []string{
		".managedFields", ".resourceVersion", ".uid", ".generation", ".observedGeneration", ".creationTimestamp",
		"[" + slinkyv1beta1.ConditionDrainsByChecksPaused + "]",    // an operator that starts anew does not know who waited
		"." + kubesim.TouchAnnotation, "." + kube.IntentAnnotation, // which has the UID of the owner in it
	} {
		if strings.Contains(path, part) {
			return true
		}
	}
	return false
}

var timestamp = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`)

var identity = regexp.MustCompile(`00000000-0000-4000-8000-\d{12}`)

// timeless returns a text without times and UIDs.
func timeless(text string) string {
	return identity.ReplaceAllString(timestamp.ReplaceAllString(text, "TIME"), "UID")
}

// state describes the world.
func (w *world) state() map[string]string {
	out := map[string]string{}
	for _, obj := range w.sim.All() {
		if obj.GetKind() == "Event" {
			continue
		}
		flatten(out, fmt.Sprintf("%s %s", obj.GetKind(), obj.GetName()), obj.Object)
	}
	if w.jail != nil {
		for path, content := range w.look() {
			out["file "+path] = content
		}
	}
	for _, name := range w.slurm.Names() {
		if status, ok := w.slurm.Node(name); ok {
			if slices.Contains(status.State, "NOT_RESPONDING") {
				status.Comment = "" // nobody writes it when the pod has gone before
			}
			if c, ok := node.ParseComment(status.Comment); ok && slices.Contains(status.State, "POWERED_DOWN") {
				c.Node = "" // where its worker was last, which may have gone before that was written
				status.Comment = c.String()
			}
			out["slurm "+name] = timeless(fmt.Sprintf("%v %q by %q, comment %q", status.State, status.Reason, status.ReasonUser, status.Comment))
		}
	}
	return out
}

func flatten(out map[string]string, path string, value any) {
	if chance(path) {
		return
	}
	switch v := value.(type) {
	case map[string]any:
		for name, child := range v {
			flatten(out, path+"."+name, child)
		}
	case []any:
		for i, child := range v {
			at := fmt.Sprint(i)
			if fields, ok := child.(map[string]any); ok {
				// Its place in the list does not matter.
				for _, name := range []string{"type", "name"} {
					if id, ok := fields[name].(string); ok {
						at = id
						break
					}
				}
			}
			flatten(out, path+"["+at+"]", child)
		}
	default:
		text, err := json.Marshal(v)
		if err != nil {
			text = fmt.Append(nil, v)
		}
		out[path] = timeless(string(text))
	}
}

// count returns what was carried out, by pod and by Slurm node.
func count(calls []call) map[string]int {
	out := map[string]int{}
	var before call // of those to Slurm
	for _, c := range calls {
		if !c.applied {
			continue
		}
		if c.to == "slurm" {
			again := before.outcome == lost && bytes.Equal(before.body, c.body)
			before = c
			if again {
				continue // said once more, because the connection broke
			}
		}
		switch {
		case c.path == submission:
			out["submit a job for "+c.requiredNodes()]++
		case c.to == "slurm":
			u := c.update()
			names, _ := hostlist.Expand(strings.Join(u.Name, ","), 100000)
			for _, name := range names {
				out[strings.ToLower(strings.Join(u.State, ","))+" "+name]++
			}
		case c.method == "DELETE" && strings.HasPrefix(c.path, "pods/"):
			out["delete "+c.path]++
		case c.method == "POST" && c.path == "pods":
			var pod struct {
				Metadata struct{ Name string }
			}
			_ = json.Unmarshal(c.body, &pod) // it was accepted
			out["create pods/"+pod.Metadata.Name]++
		}
	}
	return out
}

// differences returns the fields in which two states differ, but for masked ones.
func differences(want, got map[string]string, masked func(path string) bool) []string {
	var out []string
	paths := maps.Clone(want)
	maps.Copy(paths, got)
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		if want[path] != got[path] && !masked(path) {
			out = append(out, fmt.Sprintf("%s\n    want %s\n    got  %s", path, shorten(want[path]), shorten(got[path])))
		}
	}
	return out
}

func shorten(s string) string {
	if len(s) > 300 {
		return s[:300] + "…"
	}
	return s
}

// reference is what two untouched runs have in common.
type reference struct {
	outcome
	masked map[string]bool
}

// compare returns what is wrong with a run, measured by the reference.
func (o outcome) compare(ref *reference, s scenario, f fault) []string {
	wrong := slices.Clone(o.violations)
	if !f.otherEnd && !s.anyEnd && !otherJobs(f, o.calls) {
		masked := func(path string) bool {
			// Only an operator that has seen the key before sees that it has changed (docs/administrators/keys.md).
			return ref.masked[path] || f.forgets && strings.HasSuffix(path, "."+slinkyv1beta1.AnnotationWantedKey)
		}
		if diff := differences(ref.state, o.state, masked); len(diff) > 0 {
			wrong = append(wrong, fmt.Sprintf("the end is another one, in %d fields:\n  %s", len(diff), strings.Join(diff[:min(len(diff), 12)], "\n  ")))
		}
	}
	if !f.moreActions && !s.anyEnd {
		for _, action := range slices.Sorted(maps.Keys(o.counts)) {
			if o.counts[action] > ref.counts[action] {
				wrong = append(wrong, fmt.Sprintf("%s: %d times, %d in the reference", action, o.counts[action], ref.counts[action]))
			}
		}
	}
	if late := o.took - ref.took; late > slack+f.lasts {
		wrong = append(wrong, fmt.Sprintf("it took %s longer than the reference", late))
	}
	return wrong
}

// slack is how much longer a run with a fault may take than without, the fault's own time aside.
const slack = 2 * time.Minute

// report fails the test with what went wrong, and shows what was written until then.
func (o outcome) report(t *testing.T, wrong []string) {
	t.Helper()
	if len(wrong) == 0 {
		return
	}
	var b strings.Builder
	for _, c := range o.calls {
		fmt.Fprintln(&b, c)
	}
	t.Errorf("%s\n\nwhat the operator wrote:\n%s", strings.Join(wrong, "\n"), b.String())
}
