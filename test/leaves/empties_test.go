// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package leaves_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/render/image"
	"github.com/coxswain-hpc/coxswain/internal/render/login"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmctld"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmd"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmdbd"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmrestd"
	"github.com/coxswain-hpc/coxswain/internal/testing/crdcheck"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// meantEmpty are the fields whose empty value is another one than none, with the reason.
var meantEmpty = map[string]string{
	"jail: {":                  "a jail without a volume, which is told; the field is newer than the programs in question",
	"munge: {":                 "munge without a key, which admission refuses; the field is newer than the programs in question",
	"sssd: {":                  "SSSD without an sssd.conf, which admission refuses; the field is newer than the programs in question",
	"storageConfig.tls: {":     "a set of authorities without any; the field is newer than the programs in question",
	"persistence: {":           "no storage class and a selector of every volume are among the empty fields",
	"powerSaving: {}":          "Slurm powers the workers; the field is newer than the programs in question",
	"powerSaving.initial: 0":   "none, where the default is one",
	"replicas: 0":              "none, where the default is one",
	"persistence.selector: {}": "every volume, where none selects by the other fields",
	`persistence.selector: {"matchExpressions":[],"matchLabels":{}}`: "every volume, where none selects by the other fields",
	`persistence.storageClassName: ""`:                               "no storage class, where none is the default class",
	`embeddedDatabase.storage.storageClassName: ""`:                  "no storage class, where none is the default class",
	`embeddedDatabase.storage: {"storageClassName":""}`:              "no storage class, where none is the default class",
}

// TestEmptyLeavesMeanNothing writes what clients write who mean nothing by it, null, "", 0, [] and {}, into every field of
// every component, and into objects one with all fields empty. The API server takes it, and the component is the same as
// without the field.
func TestEmptyLeavesMeanNothing(t *testing.T) {
	definitions := crdcheck.Load(t, "slinky.slurm.net")
	for _, kind := range []string{"Accounting", "Controller", "LoginSet", "NodeSet", "RestApi", "Token"} {
		t.Run(kind, func(t *testing.T) {
			table, definition := load(t, kind), definitions[kind]
			seen := map[string]bool{}
			tried := 0
			for _, leaf := range slices.Sorted(maps.Keys(table.Leaves)) {
				for path := leaf; path != ""; path = path[:max(strings.LastIndex(path, "."), 0)] {
					tried += tryEmpty(t, definition, table, leaf, path, seen)
				}
			}
			t.Logf("%d empty values", tried)
			if tried < 10 {
				t.Errorf("only %d empty values were tried", tried)
			}
		})
	}
}

func tryEmpty(t *testing.T, definition *crdcheck.CRD, table scene, leaf, path string, seen map[string]bool) int {
	t.Helper()
	without := func() map[string]any { return table.objects(t, "ns", "it", leaf, nil)[0].Object }
	plain := without()
	parent, name := fieldOf(plain, path)
	delete(parent, name)
	if len(definition.Create(t.Context(), plain)) > 0 {
		return 0 // the field is needed
	}
	want := meaning(t, plain)
	tried := 0
	for _, empty := range empties(schemaOf(t, definition, path)) {
		object := without()
		parent, name := fieldOf(object, path)
		parent[name] = empty
		text, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		if seen[string(text)] {
			continue
		}
		seen[string(text)] = true
		tried++
		value, _ := json.Marshal(empty)
		what := fmt.Sprintf("%s: %s", path, value)
		object = crdcheck.Parse(t, string(text))
		problems := definition.Create(t.Context(), object)
		if len(problems) > 0 && fmt.Sprint(empty) == "map[]" && !slices.ContainsFunc(problems, func(p *field.Error) bool { return p.Type != field.ErrorTypeRequired }) {
			continue // no program writes it: the type has a field that is always there, and the predecessor refuses it too
		}
		if len(problems) > 0 {
			if exception(what) == "" {
				t.Errorf("%s is refused: %v", what, problems.ToAggregate())
			}
			continue
		}
		if diff := cmp.Diff(want, meaning(t, object)); diff != "" && exception(what) == "" {
			t.Errorf("%s means something (-without +with):\n%s", what, diff)
		}
	}
	return tried
}

// exception returns the reason for which an empty value means something.
func exception(what string) string {
	field, value, _ := strings.Cut(what, ": ")
	if reason := meantEmpty[what]; reason != "" || value == "{}" || !strings.HasPrefix(value, "{") {
		return reason
	}
	return meantEmpty[field+": {"]
}

// fieldOf finds the object that holds a field of the spec, and makes the objects on the way.
func fieldOf(object map[string]any, path string) (map[string]any, string) {
	steps := append([]string{"spec"}, strings.Split(path, ".")...)
	for _, step := range steps[:len(steps)-1] {
		next, ok := object[step].(map[string]any)
		if !ok {
			next = map[string]any{}
			object[step] = next
		}
		object = next
	}
	return object, steps[len(steps)-1]
}

func schemaOf(t *testing.T, definition *crdcheck.CRD, path string) *apiextensions.JSONSchemaProps {
	t.Helper()
	s := definition.Schema
	for step := range strings.SplitSeq("spec."+path, ".") {
		next, ok := s.Properties[step]
		if !ok {
			t.Fatalf("there is no %s", path)
		}
		s = &next
	}
	return s
}

// empties returns the empty values that a field may be given by type.
func empties(s *apiextensions.JSONSchemaProps) []any {
	out := []any{nil}
	switch {
	case s.XIntOrString:
	case s.Format == "date-time": // of which a program writes null
	case s.Type == "string" && (strings.Contains(rules(s), "(h|m|s|ms)") || strings.Contains(s.Pattern, "(ns|us|ms|s|m|h)")):
		out = append(out, "0s")
	case s.Type == "string":
		out = append(out, "")
	case s.Type == "integer":
		out = append(out, int64(0))
	case s.Type == "array":
		out = append(out, []any{})
	case s.Type == "object":
		out = append(out, map[string]any{})
		if all := allEmpty(s); len(all) > 0 {
			out = append(out, all)
		}
	}
	return out
}

func rules(s *apiextensions.JSONSchemaProps) string {
	var out strings.Builder
	for _, r := range s.XValidations {
		out.WriteString(r.Rule)
	}
	return out.String()
}

// allEmpty returns an object as a Go program writes one whose fields are not filled in.
func allEmpty(s *apiextensions.JSONSchemaProps) map[string]any {
	out := map[string]any{}
	for name, property := range s.Properties {
		if values := empties(&property); len(values) > 1 {
			out[name] = values[len(values)-1]
		}
	}
	return out
}

// meaning returns what follows from an object: what is rendered for it, and what its methods return.
func meaning(t *testing.T, object map[string]any) map[string]any {
	t.Helper()
	images := image.Set{Registry: "any", Tag: "any"}
	out := map[string]any{}
	c := &slinkyv1beta1.Controller{}
	c.Namespace, c.Name = "ns", "it"
	var obj client.Object
	switch object["kind"] {
	case "Accounting":
		a := decoded[slinkyv1beta1.Accounting](t, object)
		obj, out["rendered"] = a, text(t, slurmdbd.Render(slurmdbd.Input{Accounting: a, Password: "any", SealingKey: []byte("any"), Images: images}))
	case "Controller":
		a := decoded[slinkyv1beta1.Controller](t, object)
		obj, out["rendered"] = a, text(t, slurmctld.Render(slurmctld.Input{Controller: a, ClusterDomain: "cluster.local", Images: images}))
	case "RestApi":
		a := decoded[slinkyv1beta1.RestApi](t, object)
		obj, out["rendered"] = a, text(t, slurmrestd.Render(slurmrestd.Input{RestAPI: a, Controller: c, Images: images}))
	case "LoginSet":
		a := decoded[slinkyv1beta1.LoginSet](t, object)
		obj, out["rendered"] = a, text(t, login.Render(login.Input{LoginSet: a, Controller: c, Images: images, ClusterDomain: "any"}))
	case "NodeSet":
		a := decoded[slinkyv1beta1.NodeSet](t, object)
		in := slurmd.Input{NodeSet: a, Controller: c, Images: images, ClusterDomain: "any"}
		pod, err := slurmd.Pod(in, workerpod.Place{}, "")
		data, revisionErr := slurmd.RevisionData(in)
		claims, claimsErr := slurmd.Claims(a, workerpod.Place{})
		obj, out["rendered"], out["revision"] = a, text(t, []any{pod, err, revisionErr, claims, claimsErr, slurmd.SSHConfig(slurmd.Input{NodeSet: a})}), string(data)
	case "Token":
		obj = decoded[slinkyv1beta1.Token](t, object)
	}
	v := reflect.ValueOf(obj)
	for i := range v.NumMethod() {
		name := v.Type().Method(i).Name
		if m := v.Method(i); m.Type().NumIn() == 0 && m.Type().NumOut() > 0 && !strings.HasPrefix(name, "DeepCopy") {
			var said []any
			for _, result := range m.Call(nil) {
				said = append(said, result.Interface())
			}
			out[name] = text(t, said)
		}
	}
	return out
}

func decoded[T any](t *testing.T, object map[string]any) *T {
	t.Helper()
	out := new(T)
	crdcheck.Decode(t, object, out)
	if read, ok := any(out).(interface{ DropEmpty() }); ok {
		read.DropEmpty() // as the operator's cache does
	}
	return out
}

func text(t *testing.T, value any) string {
	t.Helper()
	out, err := json.MarshalIndent(value, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
