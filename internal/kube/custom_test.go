// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/coxswain-hpc/coxswain/api/embedded"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/kube/foreignkind"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
)

func TestAComposedComponentIsAppliedOnceAndItsStatusStays(t *testing.T) {
	s := apiserver.Start(t)
	withOurs := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, slinkyv1beta1.AddToScheme} {
		if err := add(withOurs); err != nil {
			t.Fatal(err)
		}
	}
	direct := s.Client(t, withOurs)
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "owner"}}
	if err := direct.Create(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	controller := func() *slinkyv1beta1.Controller {
		return &slinkyv1beta1.Controller{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "slurm", Labels: map[string]string{"a": "b"}},
			Spec: slinkyv1beta1.ControllerSpec{
				// As users write it: quantities not in canonical form, and a null of a strategic merge patch.
				Slurmctld: &embedded.Container{RawExtension: runtime.RawExtension{Raw: []byte(
					`{"resources":{"limits":{"cpu":"1000m","memory":1073741824}},"env":[{"name":"A","value":"b"}],"livenessProbe":null}`)}},
			},
		}
	}
	if result, err := NewApplier(direct, direct).Apply(t.Context(), owner, controller()); err != nil || !result.Wrote() {
		t.Fatalf("first apply: %s, %v", result, err)
	}
	s.Writes.Reset()
	if result, err := NewApplier(direct, direct).Apply(t.Context(), owner, controller()); err != nil || result.Wrote() {
		t.Fatalf("second apply: %s, %v", result, err)
	}
	s.Writes.ExpectNone(t)

	a := NewApplier(direct, direct)
	before := read(t, direct, controller())
	after := before.DeepCopy()
	Summary{Generation: before.Generation}.Write(&after.Status.Conditions)
	if wrote, err := a.PatchStatus(t.Context(), before, after); err != nil || !wrote {
		t.Fatalf("status: %v, %v", wrote, err)
	}
	changed := controller()
	changed.Labels = nil
	if result, err := a.Apply(t.Context(), owner, changed); err != nil || !result.Wrote() {
		t.Fatalf("change: %s, %v", result, err)
	}
	if live := read(t, direct, controller()); len(live.Status.Conditions) != 3 || len(live.Labels) != 0 {
		t.Errorf("conditions %v, labels %v", live.Status.Conditions, live.Labels)
	}
}

func TestAKindIsFoundWhenItIsInstalledLater(t *testing.T) {
	s := apiserver.StartBare(t)
	direct := s.Client(t, scheme.Scheme)
	mapper := &countingMapper{RESTMapper: direct.RESTMapper()}
	kind := foreignkind.Kind{
		GroupVersionKind: schema.GroupVersionKind{Group: "monitoring.example.com", Version: "v1", Kind: "ServiceMonitor"},
		Definition:       "servicemonitors.monitoring.example.com",
	}
	serves := func() (bool, error) {
		fit, err := Definitions{kind.Definition: judged{reader: direct, kind: kind}}.Fit(t.Context(), mapper, kind)
		return fit.Usable(), err
	}
	for range 3 {
		if found, err := serves(); err != nil || found {
			t.Fatalf("before: %v, %v", found, err)
		}
	}
	if mapper.asked > 0 {
		t.Errorf("the server was asked %d times for a kind that has no definition", mapper.asked)
	}
	yes := true
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: kind.Definition},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: kind.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "servicemonitors", Singular: "servicemonitor", Kind: kind.Kind, ListKind: kind.Kind + "List"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: kind.Version, Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &yes}},
			}},
		},
	}
	options := envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{crd}}
	if _, err := envtest.InstallCRDs(s.Config, options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := envtest.UninstallCRDs(s.Config, options); err != nil {
			t.Error(err)
		}
	})
	if found, err := serves(); err != nil || !found {
		t.Errorf("after: %v, %v", found, err)
	}
}

func TestADefinitionIsKeptWithoutItsSchema(t *testing.T) {
	kind := foreignkind.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Probe"}, Definition: "probes.example.com"}
	for scope, want := range map[string]map[string]string{
		"Namespaced": nil,
		"Cluster":    {"coxswain.dev/misfit": "the objects of CRD probes.example.com are in no namespace"},
	} {
		crd := newDefinition()
		crd.SetName(kind.Definition)
		crd.SetUID("u")
		crd.SetResourceVersion("7")
		crd.SetAnnotations(map[string]string{"a": "b"})
		crd.Object["spec"] = map[string]any{"scope": scope, "versions": []any{map[string]any{"name": "v1", "served": true}}}
		got, err := judge(kind)(crd)
		if err != nil {
			t.Fatal(err)
		}
		kept := newDefinition()
		kept.SetName(kind.Definition)
		kept.SetUID("u")
		kept.SetResourceVersion("7")
		kept.SetAnnotations(want)
		again, err := judge(kind)(got) // as caches do
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]any{kept, kept}, []any{got, again}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", scope, diff)
		}
	}
}

// judged is a cache of a definition that is always up to date.
type judged struct {
	cache.Cache
	reader client.Reader
	kind   foreignkind.Kind
}

// Get is part of cache.Cache.
func (j judged) Get(ctx context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	crd := newDefinition()
	if err := j.reader.Get(ctx, key, crd); err != nil {
		return err
	}
	kept, err := judge(j.kind)(crd)
	if u, ok := kept.(*unstructured.Unstructured); ok {
		obj.SetAnnotations(u.GetAnnotations())
	}
	return err
}

// countingMapper counts calls that ask the server about an unknown kind.
type countingMapper struct {
	meta.RESTMapper
	asked int
}

// RESTMapping is part of meta.RESTMapper.
func (m *countingMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	m.asked++
	return m.RESTMapper.RESTMapping(kind, versions...)
}
