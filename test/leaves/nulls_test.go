// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package leaves_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/crdcheck"
)

// smallest are specs with what they need, by the kinds' names in the definitions.
func smallest() map[string]string {
	keys := "slurmKeyRef: {name: keys, key: slurm.key}, jwtKeyRef: {name: keys, key: jwt.key}"
	return map[string]string{
		"slinky.slurm.net/Accounting":       "{" + keys + ", storageConfig: {host: db, passwordKeyRef: {name: keys, key: password}}}",
		"slinky.slurm.net/Controller":       "{" + keys + ", clusterName: demo}",
		"slinky.slurm.net/LoginSet":         "{controllerRef: {name: demo}}",
		"slinky.slurm.net/NodeSet":          "{controllerRef: {name: demo}}",
		"slinky.slurm.net/RestApi":          "{controllerRef: {name: demo}}",
		"slinky.slurm.net/Token":            "{jwtKeyRef: {name: keys, key: jwt.key}, username: alice}",
		"slurm.nebius.ai/ActiveCheck":       "{slurmClusterRefName: demo}",
		"slurm.nebius.ai/JailedConfig":      "{configMap: {name: files}}",
		"slurm.nebius.ai/NodeConfigurator":  "{}",
		"slurm.nebius.ai/NodeSet":           "{slurmd: {image: {repository: r, tag: t}}}",
		"slurm.nebius.ai/NodeSetPowerState": "{nodeSetRef: workers}",
		"slurm.nebius.ai/SlurmCluster":      "{slurmNodes: {worker: {size: 2}, login: {size: 1}}}",
	}
}

// TestServerSideApplyTakesNull applies objects in which every optional field is null, as charts render values that
// are not set. A plain create drops such a field. Server-side apply keeps it, so that the schema has to allow it.
func TestServerSideApplyTakesNull(t *testing.T) {
	server := apiserver.Start(t)
	user := server.Client(t, runtime.NewScheme())
	for name, spec := range smallest() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			group, kind, _ := strings.Cut(name, "/")
			definition := crdcheck.Load(t, group)[kind]
			object := definition.Object()
			object["spec"] = crdcheck.Parse(t, spec)
			definition.Grow(t.Context(), object)

			nulled := map[string]bool{}
			for depth := range 12 {
				form := runtime.DeepCopyJSON(object)
				for _, path := range definition.LeaveOut(t.Context(), form, depth) {
					nulled[path] = true
				}
				if diff := cmp.Diff(read(t, definition, without(form)), read(t, definition, form)); diff != "" {
					t.Errorf("null means something (-without +with):\n%s", diff)
				}
				u := &unstructured.Unstructured{Object: form}
				u.SetNamespace(server.Namespace)
				err := user.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("chart"), client.DryRunAll)
				if err != nil {
					t.Error(strings.ReplaceAll(err.Error(), ", spec.", ",\nspec."))
				}
			}
			allowed, refused := definition.Null()
			if len(refused) > 0 {
				t.Errorf("hack/allow-null has left out %v", refused)
			}
			t.Logf("%d of %d fields were null", len(nulled), len(allowed))
			if 2*len(nulled) < len(allowed) {
				t.Error("these are less than half of them")
			}
		})
	}
}

// without returns a value without the nulls in it.
func without(value any) any {
	switch value := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, below := range value {
			if below != nil {
				out[name] = without(below)
			}
		}
		return out
	case []any:
		out := make([]any, len(value))
		for i, item := range value {
			out[i] = without(item)
		}
		return out
	}
	return value
}

// read returns an object as the operator reads it.
func read(t *testing.T, definition *crdcheck.CRD, value any) client.Object {
	t.Helper()
	object, ok := runtime.DeepCopyJSONValue(value).(map[string]any)
	if !ok {
		t.Fatalf("%v is no object", value)
	}
	definition.Default(object)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{slinkyv1beta1.AddToScheme, nebiusv1.AddToScheme, nebiusv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	out, err := scheme.New((&unstructured.Unstructured{Object: object}).GroupVersionKind())
	if err != nil {
		t.Fatal(err)
	}
	crdcheck.Decode(t, object, out)
	if dropper, ok := out.(interface{ DropEmpty() }); ok {
		dropper.DropEmpty()
	}
	obj, ok := out.(client.Object)
	if !ok {
		t.Fatalf("%T is no object", out)
	}
	return obj
}
