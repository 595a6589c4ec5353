// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apimachinery/pkg/runtime"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	"github.com/coxswain-hpc/coxswain/internal/testing/crdcheck"
	"github.com/coxswain-hpc/coxswain/internal/testing/golden"
)

// byDesign are leaves that are neither effective nor reported, with what is below them.
var byDesign = []string{
	// Their description states that they have no effect.
	"spec.crVersion",
	"spec.slurmNodes.accounting.size",
	"spec.slurmNodes.exporter.size",
	"spec.slurmNodes.exporter.munge",
	"spec.slurmNodes.exporter.volumes",
	// The name by which other fields of the same object refer to it.
	"spec.k8sNodeFilters[].name",
}

// kept are leaves without effect whose defaults are what happens all the same.
var kept = []string{
	// There is one pod.
	"spec.sConfigController.node.size",
	// Kubernetes has the same default, and there are no such containers.
	"spec.slurmNodes.exporter.exporter.imagePullPolicy",
	"spec.slurmNodes.exporter.munge.imagePullPolicy",
	"spec.slurmNodes.login.sssd.imagePullPolicy",
	// slurmctld has the topology of a worker before it takes jobs.
	"spec.ephemeralTopologyWaitTimeout",
	// Slurm powers up what ephemeralNodes and ResumeProgram ask for.
	"spec.nodeConfig.autoResume",
	// Both strategies drain workers.
	"spec.updateStrategy",
}

// TestEveryLeafIsEffectiveOrTold changes every leaf of a SlurmCluster and of a NodeSet, one at a time, by the CRDs. What is
// composed must change with it, or a condition must name the leaf; also when it is not given, if its default is not what
// happens (kept). A new field needs nothing here unless a value has to be of a certain form (leafValues) or other fields must
// be set for it to matter (leafNeeds).
func TestEveryLeafIsEffectiveOrTold(t *testing.T) {
	d, page := load(t), deadPage{}
	for _, kind := range []string{"SlurmCluster", "NodeSet"} {
		w := &leafWalk{definitions: d, kind: kind, before: map[string]string{}, dead: map[string]bool{}}
		page[kind] = w.dead
		crdcheck.Walk("", d.nebius[kind].Schema, func(path string, s *apiextensions.JSONSchemaProps) { w.visit(t, path, s) })
		t.Logf("%s: %d leaves", kind, w.leaves)
		if w.leaves < 50 {
			t.Errorf("%s has %d leaves only; does the walk see its spec?", kind, w.leaves)
		}
	}
	page["ActiveCheck"] = deadOfChecks(t, d.nebius["ActiveCheck"])
	for kind := range d.nebius {
		if page[kind] == nil && kind != "JailedConfig" && kind != "NodeConfigurator" && kind != "NodeSetPowerState" { // all of whose fields have effects
			t.Errorf("no field of a %s is tried", kind)
		}
	}
	// With -update it is written anew.
	golden.Check(t, "../../../docs/users/without-effect.md", []byte(page.markdown()))
}

// leafWalk goes through the leaves of one kind.
type leafWalk struct {
	definitions
	kind   string
	leaves int
	// last is the last leaf; what is below it is no leaf of its own.
	last string
	// before is what was composed before a change, by what the leaf needs.
	before map[string]string
	// dead is true for each leaf that is reported as without effect.
	dead map[string]bool
}

func (w *leafWalk) visit(t *testing.T, path string, s *apiextensions.JSONSchemaProps) {
	t.Helper()
	below, isSpec := strings.CutPrefix(path, ".spec.")
	path = "spec." + below
	if !isSpec || !isLeaf(s) || w.last != "" && (strings.HasPrefix(path, w.last+".") || strings.HasPrefix(path, w.last+"[]")) {
		return
	}
	w.leaves++
	w.last = path
	effective, told, ignored := w.try(t, path, s)
	w.dead[path] = !effective && ignored
	if standard := standardOf(path, s); !effective && standard != nil && !slices.Contains(kept, path) && !w.isToldUnset(t, path) {
		t.Errorf("%s of %s is %v if it is not given, which has no effect, and nothing says so", path, w.kind, standard)
	}
	switch {
	case (effective || told) && slices.Contains(byDesign, path):
		t.Errorf("%s of %s has an effect or is told; take it out of byDesign", path, w.kind)
	case !effective && !told && !isByDesign(path):
		t.Errorf("%s of %s changes nothing that is composed, and no condition says so", path, w.kind)
	}
}

// standardOf returns the default of a leaf; nil if it asks for nothing.
func standardOf(path string, s *apiextensions.JSONSchemaProps) any {
	if path == "spec.docker.enabled" {
		return true // the one default that Soperator's operator has, and not its CRDs
	}
	if s.Default == nil || reflect.ValueOf(*s.Default).IsZero() {
		return nil
	}
	return *s.Default
}

// isToldUnset reports whether a condition or a warning names a leaf that is not given.
func (w *leafWalk) isToldUnset(t *testing.T, path string) bool {
	t.Helper()
	unset := w.needed(t, path)
	if object, ok := at(unset[w.kind], parent(path)).(map[string]any); ok {
		delete(object, path[strings.LastIndex(path, ".")+1:])
	}
	_, dead, noted := w.compose(t, path, unset)
	return slices.ContainsFunc(slices.Concat(dead, noted), func(text string) bool { return names(text, path) })
}

func isByDesign(path string) bool {
	return slices.ContainsFunc(byDesign, func(begin string) bool { return path == begin || strings.HasPrefix(path, begin+".") })
}

func isLeaf(s *apiextensions.JSONSchemaProps) bool {
	for s.Items != nil && s.Items.Schema != nil {
		s = s.Items.Schema
	}
	return len(s.Properties) == 0 || s.XPreserveUnknownFields != nil && *s.XPreserveUnknownFields
}

// try composes the world with and without another value of a leaf.
func (w *leafWalk) try(t *testing.T, path string, s *apiextensions.JSONSchemaProps) (effective, told, ignored bool) {
	t.Helper()
	before := w.needed(t, path)
	key := fmt.Sprint(leafNeeds(w.kind, path), open(before[w.kind], path))
	if _, known := w.before[key]; !known {
		w.before[key], _, _ = w.compose(t, path, before)
	}
	after := w.needed(t, path)
	value := leafValue(w.kind, path, s, at(after[w.kind], path))
	for instead, v := range inPlaceOf(path) {
		put(t, after[w.kind], instead, v)
	}
	put(t, after[w.kind], path, value)
	is, dead, noted := w.compose(t, path, after)
	isNamed := func(text string) bool { return names(text, path) }
	ignored = slices.ContainsFunc(dead, isNamed)
	return is != w.before[key], ignored || slices.ContainsFunc(noted, isNamed), ignored
}

// inPlaceOf are other fields that change with a leaf, since both cannot be set.
func inPlaceOf(path string) map[string]any {
	const accounting = "spec.slurmNodes.accounting."
	switch path {
	case accounting + "embeddedDB.enabled":
		return map[string]any{accounting + "externalDB.enabled": false}
	case accounting + "externalDB.enabled":
		return map[string]any{accounting + "embeddedDB.enabled": true}
	}
	if parent, ok := strings.CutSuffix(path, "volumeClaimTemplateSpec"); ok {
		return map[string]any{parent + "volumeSourceName": nil, parent + "volumeSource": nil}
	}
	return nil
}

// needed are the objects before a change of a leaf, by kind, with what the leaf needs.
func (w *leafWalk) needed(t *testing.T, path string) map[string]map[string]any {
	t.Helper()
	out := w.world(t)
	for needed, v := range leafNeeds(w.kind, path) {
		put(t, out[w.kind], needed, v)
	}
	return out
}

// world are the objects before a change, by kind.
func (d definitions) world(t *testing.T) map[string]map[string]any {
	t.Helper()
	out := map[string]map[string]any{}
	for _, kind := range []string{"SlurmCluster", "NodeSet"} {
		text, err := os.ReadFile("testdata/leaves/" + kind + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		out[kind] = crdcheck.Parse(t, string(text))
	}
	return out
}

// compose returns what is composed, as text, and what is reported: fields without effect, and others.
func (d definitions) compose(t *testing.T, path string, world map[string]map[string]any) (composed string, ignored, noted []string) {
	t.Helper()
	for kind, object := range world {
		if errs := d.nebius[kind].Create(t.Context(), object); len(errs) > 0 {
			t.Errorf("%s: the API server refuses the %s: %v", path, kind, errs.ToAggregate())
		}
	}
	cluster, set := &nebiusv1.SlurmCluster{}, nebiusv1alpha1.NodeSet{}
	delete(world["NodeSet"], "status")
	crdcheck.Decode(t, world["SlurmCluster"], cluster)
	crdcheck.Decode(t, world["NodeSet"], &set)
	cluster.Namespace, set.Namespace = "slurm", "slurm"
	jailIsFilled(cluster)
	in := Input{Cluster: cluster, Observed: Observed{Installed: AllInstalled()}}
	if OwnerOf(&set, []nebiusv1.SlurmCluster{*cluster}) == cluster.Name {
		in.NodeSets = append(in.NodeSets, set)
	}
	out, workers := Cluster(in), NodeSet(cluster, &set)
	if problems := append(out.Problems, workers.Problems...); len(problems) > 0 {
		t.Errorf("%s: its value is a mistake, which shows nothing: %s", path, problems.Message())
	}
	data, err := json.Marshal(out.Objects)
	if err != nil {
		t.Fatal(err)
	}
	return string(data), slices.Concat(out.Ignored, workers.Ignored), slices.Concat(out.Notes, out.Unresolved, workers.Notes)
}

var indexes = regexp.MustCompile(`\[[^\]]*\]`)

// names reports whether a text of a condition names a leaf: "spec.a.b", "spec.a" for all below it, "spec.a (b, c)" or
// "spec.a.b: a sentence".
func names(text, path string) bool {
	text, path = indexes.ReplaceAllString(text, ""), indexes.ReplaceAllString(path, "")
	if block, members, ok := strings.Cut(strings.TrimSuffix(text, ")"), " ("); ok && !strings.Contains(block, ":") {
		if member, below := strings.CutPrefix(path, block+"."); below {
			first, _, _ := strings.Cut(member, ".")
			return slices.Contains(strings.Split(members, ", "), first)
		}
		text = block
	}
	text, _, _ = strings.Cut(text, ": ")
	return path == text || strings.HasPrefix(path, text+".") || text == "appArmorProfile" && strings.HasSuffix(path, ".appArmorProfile")
}

// put sets a field by its path; an item of a list is the first one.
func put(t *testing.T, object map[string]any, path string, value any) {
	t.Helper()
	parts := strings.Split(path, ".")
	for i, part := range parts {
		name, isList := strings.CutSuffix(part, "[]")
		if i == len(parts)-1 {
			if isList {
				value = []any{value}
			}
			object[name] = runtime.DeepCopyJSONValue(value)
			return
		}
		next := object[name]
		if isList {
			list, _ := next.([]any)
			if len(list) == 0 {
				list = []any{map[string]any{}}
				object[name] = list
			}
			next = list[0]
		}
		below, ok := next.(map[string]any)
		if !ok {
			below = map[string]any{}
			object[name] = below
		}
		object = below
	}
}

// open makes the objects that a leaf is in, as far as they are missing, and returns the path of the innermost; empty if all were
// there. Otherwise the defaults of its siblings would come with a leaf, and look like its effect.
func open(object map[string]any, path string) (made string) {
	if strings.HasSuffix(path, ".volumeClaimTemplateSpec") || strings.HasSuffix(path, ".volumeSourceName") {
		path = parent(path) // one of both must be given
	}
	for part := range strings.SplitSeq(parent(path), ".") {
		name, isList := strings.CutSuffix(part, "[]")
		next := object[name]
		if list, _ := next.([]any); isList && len(list) > 0 {
			next = list[0]
		}
		below, ok := next.(map[string]any)
		if !ok && isList {
			return made // no item is not one with defaults
		}
		if !ok {
			below = map[string]any{}
			object[name] = below
			made = parent(path)
		}
		object = below
	}
	return made
}

// at is what the object has at a path, nil if nothing.
func at(object map[string]any, path string) any {
	var value any = object
	for part := range strings.SplitSeq(path, ".") {
		name, isList := strings.CutSuffix(part, "[]")
		below, _ := value.(map[string]any)
		value = below[name]
		if list, _ := value.([]any); isList && len(list) > 0 {
			value = list[0]
		}
	}
	return value
}

// leafValue is a value of a leaf that differs from its present one and its default.
func leafValue(kind, path string, s *apiextensions.JSONSchemaProps, was any) any {
	if i := slices.IndexFunc(leafValues, func(v leafForm) bool { return v.kind == kind && v.end == path }); i >= 0 {
		return leafValues[i].value
	}
	for _, v := range leafValues {
		if v.kind != "" && v.kind != kind {
			continue
		}
		if strings.HasPrefix(v.end, ".") && strings.HasSuffix(path, v.end) {
			return v.value
		}
	}
	if was == nil && s.Default != nil {
		was = *s.Default
	}
	switch {
	case len(s.Enum) > 0:
		i := slices.IndexFunc(s.Enum, func(v apiextensions.JSON) bool { return v != apiextensions.JSON("") && !reflect.DeepEqual(v, was) })
		return s.Enum[i]
	case strings.Contains(s.Pattern, "(ns|us|ms|s|m|h)"):
		return "33s"
	case s.Type == "boolean":
		on, _ := was.(bool)
		return !on
	case s.Type == "integer":
		return int64(77)
	case s.Type == "array":
		return []any{"leaf"}
	case s.Type == "object":
		return map[string]any{"leaf": "a"}
	case s.XIntOrString:
		return "7Gi"
	}
	return "leaf"
}

// leafNeeds are fields that must be set for a leaf to matter.
func leafNeeds(kind, path string) map[string]any {
	for _, n := range leafNeed {
		if n.kind == kind && strings.HasPrefix(path, n.begin) {
			return n.needs
		}
	}
	return nil
}

func fields(text string) map[string]any {
	out := map[string]any{}
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		panic(fmt.Sprintf("%s: %v", text, err))
	}
	return out
}
