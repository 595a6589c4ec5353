// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1_test

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

// stringFields puts a string where the Go type is more than a string, or where it ends up in a line of a file.
var stringFields = map[string]func(s string) map[string]any{
	"NodeSet.startTime":      scheduled("startTime"),
	"NodeSet.duration":       scheduled("duration"),
	"NodeSet.drainTimeout":   nodeSet("drainTimeout"),
	"NodeSet.maxUnavailable": rolling,
	"Token.lifetime": func(s string) map[string]any {
		return object("Token", map[string]any{"username": "a", "lifetime": s, "jwtKeyRef": map[string]any{"name": "a", "key": "b"}})
	},
	"Accounting.size": func(s string) map[string]any {
		return object("Accounting", map[string]any{"embeddedDatabase": map[string]any{"storage": map[string]any{"size": s}}})
	},
	"Controller.storage": func(s string) map[string]any {
		return object("Controller", map[string]any{"persistence": map[string]any{"resources": map[string]any{"requests": map[string]any{"storage": s}}}})
	},
	"LoginSet.maxSurge": func(s string) map[string]any {
		return object("LoginSet", map[string]any{
			"controllerRef": map[string]any{"name": "a"},
			"strategy":      map[string]any{"rollingUpdate": map[string]any{"maxSurge": s}},
		})
	},
}

func object(kind string, spec map[string]any) map[string]any {
	return map[string]any{
		"apiVersion": slinkyv1beta1.GroupVersion.String(), "kind": kind,
		"metadata": map[string]any{"name": "demo"}, "spec": spec,
	}
}

func nodeSet(field string) func(string) map[string]any {
	return func(s string) map[string]any {
		return object("NodeSet", map[string]any{"controllerRef": map[string]any{"name": "a"}, field: s})
	}
}

func scheduled(field string) func(string) map[string]any {
	return func(s string) map[string]any {
		return object("NodeSet", map[string]any{
			"controllerRef":  map[string]any{"name": "a"},
			"updateStrategy": map[string]any{"scheduledUpdate": map[string]any{field: s}},
		})
	}
}

func rolling(s string) map[string]any {
	return object("NodeSet", map[string]any{
		"controllerRef":  map[string]any{"name": "a"},
		"updateStrategy": map[string]any{"rollingUpdate": map[string]any{"maxUnavailable": s}},
	})
}

// One object that the API server admits and the Go types cannot read makes every list of its kind fail, and with it the
// operator for all objects. So whatever is admitted must be readable.
func FuzzWhatIsAdmittedCanBeRead(f *testing.F) {
	for _, seed := range []string{
		"2027-01-31T22:00:00Z", "2027-13-31T22:00:00Z", "2027-02-30T22:00:00Z", "2027-01-31T24:00:00Z", "2027-01-31T22:00:60Z",
		"2027-01-31T22:00:00+25:00", "2027-01-31T22:00:00.123456789012Z", "0000-00-00T00:00:00Z",
		"30m", "1h30m", "999999999h", "0s", "1ms", "-1h", "1.5h", "25%", "100%", "1", "10Gi", "1e3", "1e99999999999", ".", "1.5.5", "",
	} {
		f.Add(seed)
	}
	crds := loadCRDs(f)
	f.Fuzz(func(t *testing.T, s string) {
		if !utf8.ValidString(s) {
			t.Skip("JSON is UTF-8")
		}
		scheme := runtime.NewScheme()
		if err := slinkyv1beta1.AddToScheme(scheme); err != nil {
			t.Fatal(err)
		}
		for name, build := range stringFields {
			object := build(s)
			kind := object["kind"].(string)
			if errs := crds[kind].Create(t.Context(), object); len(errs) > 0 {
				continue
			}
			raw, err := json.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			into, err := scheme.New(slinkyv1beta1.GroupVersion.WithKind(kind))
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(raw, into); err != nil {
				t.Errorf("%s: %q is admitted and cannot be read: %v", name, s, err)
			}
		}
	})
}
