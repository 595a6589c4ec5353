// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/coxswain-hpc/coxswain/internal/kube/foreignkind"
	"github.com/coxswain-hpc/coxswain/internal/render"
)

// TestAKindOfOthersIsKnownByAllFieldsThatAreWritten compares the fields by which a kind is known with those of an object that has no more
// than it needs. A field that is always written, but missing in that list, would fail on a release without it.
func TestAKindOfOthersIsKnownByAllFieldsThatAreWritten(t *testing.T) {
	in := load(t).cluster(t, `{useDefaultAppArmorProfile: true, slurmNodes: {exporter: {enabled: true},
		accounting: {enabled: true, mariadbOperator: {enabled: true, image: i, storage: {size: 1Gi}}}}}`)
	in.Observed.Installed = AllInstalled()
	objects := Cluster(in).Objects
	for _, kind := range []foreignkind.Kind{AppArmorProfiles(), MariaDBs(), Grants(), PodMonitors()} {
		i := slices.IndexFunc(objects, func(o render.Object) bool { return o.GetObjectKind().GroupVersionKind() == kind.GroupVersionKind })
		if i < 0 {
			t.Errorf("no %s is made", kind.Kind)
			continue
		}
		u, ok := objects[i].(*unstructured.Unstructured)
		if !ok {
			t.Fatalf("a %T", objects[i])
		}
		written := map[string]bool{}
		fieldsWritten("spec", u.Object["spec"], written)
		// How often is scraped has a default in the CRD, and every release has had it.
		for _, byDefault := range []string{"spec.podMetricsEndpoints.interval", "spec.podMetricsEndpoints.scrapeTimeout", "spec.jobLabel"} {
			delete(written, byDefault)
		}
		if diff := cmp.Diff(kind.Fields, slices.Sorted(maps.Keys(written))); diff != "" {
			t.Errorf("%s (-known by +written):\n%s", kind.Kind, diff)
		}
	}
}

// fieldsWritten collects the paths of fields, three deep at most. It does not descend into free-form content of users.
func fieldsWritten(path string, value any, out map[string]bool) {
	switch v := value.(type) {
	case map[string]any:
		if strings.Count(path, ".") == 2 || path == "spec.storage" {
			break
		}
		for name, member := range v {
			fieldsWritten(path+"."+name, member, out)
		}
		return
	case []any:
		if len(v) > 0 {
			if _, objects := v[0].(map[string]any); objects && strings.Count(path, ".") < 2 {
				for _, member := range v {
					fieldsWritten(path, member, out)
				}
				return
			}
		}
	}
	out[path] = true
}
