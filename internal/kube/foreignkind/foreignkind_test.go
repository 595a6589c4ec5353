// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package foreignkind

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

func TestAKindIsKnownByItsScopeAndItsFields(t *testing.T) {
	kind := Kind{
		GroupVersionKind: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Probe"}, Definition: "probes.example.com",
		Fields: []string{"spec.policy", "spec.endpoints.path"},
	}
	const fields = `{policy: {type: string}, endpoints: {type: array, items: {type: object, properties: {path: {type: string}}}}}`
	for name, c := range map[string]struct{ spec, want string }{
		"the kind has the fields that are written": {
			spec: `{scope: Namespaced, versions: [{name: v1, served: true, schema: {openAPIV3Schema: {properties: {spec: {properties: ` + fields + `}}}}}]}`,
		},
		"the objects of the kind are in no namespace": {
			spec: `{scope: Cluster, versions: [{name: v1, served: true, schema: {openAPIV3Schema: {properties: {spec: {properties: ` + fields + `}}}}}]}`,
			want: "the objects of CRD probes.example.com are in no namespace",
		},
		"a field has gone": {
			spec: `{scope: Namespaced, versions: [{name: v1, served: true, schema: {openAPIV3Schema: {properties: {spec: {properties: {abstract: {type: object}, endpoints: {type: array, items: {type: object}}}}}}}}]}`,
			want: "CRD probes.example.com has no spec.policy, no spec.endpoints.path in version v1",
		},
		"another version has the field": {
			spec: `{scope: Namespaced, versions: [{name: v2, served: true, schema: {openAPIV3Schema: {properties: {spec: {properties: ` + fields + `}}}}}, {name: v1, served: true, schema: {openAPIV3Schema: {properties: {spec: {type: object}}}}}]}`,
			want: "CRD probes.example.com has no spec.policy, no spec.endpoints.path in version v1",
		},
		"the version is not served any more": {
			spec: `{scope: Namespaced, versions: [{name: v1, served: false}, {name: v2, served: true}, {name: v3, served: true}]}`,
			want: "CRD probes.example.com has no version v1, but v2 and v3",
		},
		"the kind takes whatever is written": {
			spec: `{scope: Namespaced, versions: [{name: v1, served: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}`,
		},
		"the spec of the kind is a map": {
			spec: `{scope: Namespaced, versions: [{name: v1, served: true, schema: {openAPIV3Schema: {properties: {spec: {additionalProperties: {type: string}}}}}}]}`,
		},
		"the definition says nothing about fields": {spec: `{scope: Namespaced, versions: [{name: v1, served: true}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			var definition map[string]any
			if err := yaml.Unmarshal([]byte("spec: "+c.spec), &definition); err != nil {
				t.Fatal(err)
			}
			if got := kind.Misfit(definition); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestAKindThatIsNotThereOrMisfitsIsNotUsable(t *testing.T) {
	good, absent, misfit := Fit{Installed: true}, Fit{}, Fit{Installed: true, Misfit: "it is another one"}
	for _, c := range []struct {
		fit    Fit
		usable bool
		why    string
	}{
		{fit: good, usable: true},
		{fit: absent, why: "the cluster has no CRD probes"},
		{fit: misfit, why: "it is another one"},
		{fit: good.And(good), usable: true},
		{fit: good.And(absent), why: "the cluster has no CRD probes"},
		{fit: misfit.And(good), why: "it is another one"},
		{fit: misfit.And(misfit), why: "it is another one, and it is another one"},
	} {
		if c.fit.Usable() != c.usable || !c.usable && c.fit.Why("probes") != c.why {
			t.Errorf("%+v: usable is %t, because %q", c.fit, c.fit.Usable(), c.fit.Why("probes"))
		}
	}
}
