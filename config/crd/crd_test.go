// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package crd_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/coxswain-hpc/coxswain/helm/coxswain-crds/crd"
)

// TestTheFieldsOfThePredecessorsAreThere holds our CRDs against testdata, which has the fields of the predecessors' CRDs: each is here, with
// its type, its default and its values, and nothing is required that was not. allowed-*.txt has the differences that are wanted.
func TestTheFieldsOfThePredecessorsAreThere(t *testing.T) {
	allowed := allowances(t)
	paths, err := filepath.Glob(filepath.Join("testdata", "*.txt"))
	if err != nil || len(paths) < 12 {
		t.Fatalf("there are %d tables, %v", len(paths), err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := parseTable(string(text))
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		name := strings.TrimSuffix(filepath.Base(path), ".txt")
		ours := definition(t, name)
		group, _, _ := strings.Cut(name, "_")
		c := comparison{kind: fmt.Sprintf("%s/%s/%s", group, theirs.head["kind"], theirs.head["version"])}
		c.heads(theirs.head, ours)
		c.fields(c.kind, theirs.object, ours.Spec.Versions[0].Schema.OpenAPIV3Schema)
		if c.count < 20 {
			t.Errorf("%s has %d fields", path, c.count)
		}
		for _, problem := range c.problems {
			if !allowed[problem] {
				t.Error(problem)
			}
			delete(allowed, problem)
		}
	}
	for line := range allowed {
		t.Errorf("nothing needs the allowance %q", line)
	}
}

// allowances are the lines of allowed-*.txt, which have their reasons as comments above them.
func allowances(t *testing.T) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	for _, name := range []string{"allowed-nebius.txt", "allowed-slinky.txt"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				out[line] = true
			}
		}
	}
	return out
}

func definition(t *testing.T, name string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	text, err := crd.Files.ReadFile(name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(text, crd); err != nil {
		t.Fatal(err)
	}
	return crd
}

// table is a file of testdata.
type table struct {
	head   map[string]string
	object *field
}

// field is a field of a predecessor's CRD, with what each release says of it.
type field struct {
	said  map[string]facts
	below map[string]*field
}

type facts struct {
	kind     string
	required bool
	rest     map[string]any // default, enum and limits
}

// parseTable reads a table, as README.md beside it describes.
func parseTable(text string) (*table, error) {
	out := &table{head: map[string]string{}}
	open := []*field{} // the last field of each depth
	paths := map[string]*field{}
	names := []string{}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if len(open) == 0 && !strings.HasPrefix(line, "object ") {
			key, value, _ := strings.Cut(line, " ")
			out.head[key] = value
			continue
		}
		depth := len(line) - len(strings.TrimLeft(line, " "))
		if depth > len(open) {
			return nil, fmt.Errorf("%q is too deep", line)
		}
		name, words, _ := strings.Cut(line[depth:], " ")
		open, names = open[:depth], append(names[:depth], name)
		releases := []string{"first", "newest"}
		var parent *field
		if depth > 0 {
			parent = open[depth-1]
			releases = slices.Collect(maps.Keys(parent.said))
		}
		f := &field{said: map[string]facts{}, below: map[string]*field{}}
		switch {
		case parent == nil && out.object == nil:
			out.object = f
		case parent == nil:
			f = out.object
		case parent.below[name] == nil:
			parent.below[name] = f
		default:
			f = parent.below[name]
		}
		open = append(open, f)
		paths[strings.Join(names, ".")] = f
		said, release, same, err := parseFacts(words)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
		if release != "" {
			releases = []string{release}
		}
		for _, r := range releases {
			f.said[r] = said
		}
		if same != "" {
			if paths[same] == nil {
				return nil, fmt.Errorf("%q: there is no %s above it", line, same)
			}
			f.take(paths[same])
		}
	}
	if out.object == nil {
		return nil, errors.New("there are no fields")
	}
	return out, nil
}

// take gives a field copies of the fields below another one, in the releases that it has itself.
func (f *field) take(from *field) {
	for name, theirs := range from.below {
		own := &field{said: map[string]facts{}, below: map[string]*field{}}
		for release := range f.said {
			said, ok := theirs.said[release]
			if !ok && len(from.said) == 1 { // in the other release only, where everything below is of that release
				for _, said = range theirs.said {
					ok = true
				}
			}
			if ok {
				own.said[release] = said
			}
		}
		f.below[name] = own
		own.take(theirs)
	}
}

func parseFacts(words string) (f facts, release, same string, err error) {
	f.kind, words, _ = strings.Cut(words, " ")
	f.rest = map[string]any{}
	for words != "" {
		switch {
		case words[0] == '@':
			release, words, _ = strings.Cut(words[1:], " ")
		case words[0] == '=':
			same, words, _ = strings.Cut(words[1:], " ")
		case words == "required" || strings.HasPrefix(words, "required "):
			f.required = true
			words = strings.TrimPrefix(words[len("required"):], " ")
		default:
			key, value, ok := strings.Cut(words, "=")
			if !ok {
				return f, "", "", fmt.Errorf("what is %q?", words)
			}
			decoder := json.NewDecoder(strings.NewReader(value))
			var decoded any
			if err := decoder.Decode(&decoded); err != nil {
				return f, "", "", err
			}
			f.rest[key] = decoded
			words = strings.TrimPrefix(value[decoder.InputOffset():], " ")
		}
	}
	return f, release, same, nil
}

// comparison is one of our CRDs beside that of a predecessor.
type comparison struct {
	kind     string
	count    int
	problems []string
}

func (c *comparison) problem(format string, arguments ...any) {
	if text := fmt.Sprintf(format, arguments...); !slices.Contains(c.problems, text) { // both releases may say it
		c.problems = append(c.problems, text)
	}
}

func (c *comparison) heads(theirs map[string]string, crd *apiextensionsv1.CustomResourceDefinition) {
	version := crd.Spec.Versions[0]
	names := crd.Spec.Names
	for key, ours := range map[string]string{
		"kind": names.Kind, "version": version.Name, "scope": string(crd.Spec.Scope), "names": names.Plural + " " + names.Singular,
	} {
		if theirs[key] != ours {
			c.problem("%s: %s is %s -> %s", c.kind, key, theirs[key], ours)
		}
	}
	for short := range strings.FieldsSeq(theirs["short"]) {
		if !slices.Contains(names.ShortNames, short) {
			c.problem("%s: there is no short name %s", c.kind, short)
		}
	}
	wanted, have := apiextensionsv1.CustomResourceSubresources{}, apiextensionsv1.CustomResourceSubresources{}
	if err := json.Unmarshal([]byte(theirs["subresources"]), &wanted); err != nil {
		c.problem("%s: subresources: %v", c.kind, err)
	}
	if version.Subresources != nil {
		have = *version.Subresources
	}
	if wanted.Status != nil && have.Status == nil {
		c.problem("%s: there is no subresource status", c.kind)
	}
	if wanted.Scale != nil && !reflect.DeepEqual(wanted.Scale, have.Scale) {
		c.problem("%s: subresource scale is another one", c.kind)
	}
}

// fields compares a field and what is below it.
func (c *comparison) fields(path string, theirs *field, ours *apiextensionsv1.JSONSchemaProps) {
	c.count++
	for _, release := range slices.Sorted(maps.Keys(theirs.said)) {
		c.facts(path, theirs.said[release], ours)
		c.limits(path, theirs.said[release], ours)
		c.required(path, release, theirs, ours)
	}
	keeps := ours.XPreserveUnknownFields != nil && *ours.XPreserveUnknownFields
	for _, name := range slices.Sorted(maps.Keys(theirs.below)) {
		at := path + "." + name
		var below *apiextensionsv1.JSONSchemaProps
		switch name {
		case "[]":
			if at = path + name; ours.Items != nil {
				below = ours.Items.Schema
			}
		case "{}":
			if at = path + name; ours.AdditionalProperties != nil {
				below = ours.AdditionalProperties.Schema
			}
		default:
			if property, ok := ours.Properties[name]; ok {
				below = &property
			}
		}
		switch {
		case below != nil:
			c.fields(at, theirs.below[name], below)
		case !keeps:
			c.problem("missing %s", at)
		}
	}
}

func (c *comparison) facts(path string, theirs facts, ours *apiextensionsv1.JSONSchemaProps) {
	kind := ours.Type
	if ours.XIntOrString {
		kind = "int-or-string"
	}
	keeps := ours.XPreserveUnknownFields != nil && *ours.XPreserveUnknownFields
	if theirs.kind != kind && theirs.kind != "any" && !keeps {
		c.problem("type %s: %s -> %s", path, theirs.kind, kind)
	}
	// The default of an object repeats those of its fields.
	want, ok := theirs.rest["default"]
	if _, object := want.(map[string]any); ok && !object {
		var have any
		if ours.Default != nil {
			if err := json.Unmarshal(ours.Default.Raw, &have); err != nil {
				c.problem("default %s: %v", path, err)
			}
		}
		if !reflect.DeepEqual(want, have) {
			c.problem("default %s: %s -> %s", path, written(want), written(have))
		}
	}
	if values, ok := theirs.rest["enum"].([]any); ok && len(ours.Enum) > 0 {
		for _, value := range values {
			if !slices.ContainsFunc(ours.Enum, func(own apiextensionsv1.JSON) bool { return string(own.Raw) == written(value) }) {
				c.problem("enum %s: %s is not there", path, written(value))
			}
		}
	}
}

// limits wants that we allow what a limit of theirs allows, where we have one, too.
func (c *comparison) limits(path string, theirs facts, ours *apiextensionsv1.JSONSchemaProps) {
	for key, have := range map[string]*int64{
		"minLength": ours.MinLength, "maxLength": ours.MaxLength, "minItems": ours.MinItems, "maxItems": ours.MaxItems,
		"minimum": whole(ours.Minimum), "maximum": whole(ours.Maximum),
	} {
		want, ok := theirs.rest[key].(float64)
		if !ok || have == nil {
			continue
		}
		if narrower := float64(*have) - want; strings.HasPrefix(key, "min") && narrower > 0 || strings.HasPrefix(key, "max") && narrower < 0 {
			c.problem("%s %s: %v -> %v", key, path, want, *have)
		}
	}
}

func whole(number *float64) *int64 {
	if number == nil {
		return nil
	}
	return new(int64(*number))
}

// required wants that we require no field which the release leaves optional or has not.
func (c *comparison) required(path, release string, theirs *field, ours *apiextensionsv1.JSONSchemaProps) {
	known := map[string]facts{}
	for name, below := range theirs.below {
		if said, ok := below.said[release]; ok && name != "[]" && name != "{}" {
			known[name] = said
		}
	}
	for _, name := range ours.Required {
		if !known[name].required && len(known) > 0 {
			c.problem("required %s.%s", path, name)
		}
	}
}

func written(value any) string {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return err.Error()
	}
	return strings.TrimSpace(out.String())
}
