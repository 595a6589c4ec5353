// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/reconcile/reference"
	"github.com/coxswain-hpc/coxswain/internal/render"
)

// world is a server with one object, and a kind whose functions a test may exchange.
type world struct {
	t      *testing.T
	client client.Client
	kind   *Kind[*slinkyv1beta1.RestApi, int, *Plan, string]
	events *events.FakeRecorder
	// refuse, when it is set, is what every creation and every server-side apply meets.
	refuse error
	// writes are the verbs and kinds of what was written.
	writes []string
	// reports are what Report was called with.
	reports []Outcome[int, *Plan, string]
}

// metadata is a cache that has what the server has.
type metadata struct {
	cache.Cache
	reader client.Reader
}

func (m metadata) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return m.reader.Get(ctx, key, obj, opts...)
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, slinkyv1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	w := &world{t: t, events: events.NewFakeRecorder(100)}
	obj := &slinkyv1beta1.RestApi{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "api", UID: "uid-api", Generation: 3}}
	w.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(objects, obj)...).WithStatusSubresource(obj).
		WithIndex(&corev1.ConfigMap{}, kube.OwnerIndex, ownerOf).WithInterceptorFuncs(w.watch()).Build()
	w.kind = &Kind[*slinkyv1beta1.RestApi, int, *Plan, string]{
		Base: &Base{
			Reader:   reference.Reader{Client: w.client, Live: w.client, Metadata: metadata{reader: w.client}},
			Applier:  kube.NewApplier(w.client, w.client),
			Recorder: w.events, Clock: clocktesting.NewFakePassiveClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)),
		},
		New:    func() *slinkyv1beta1.RestApi { return &slinkyv1beta1.RestApi{} },
		Effect: render.Effect,
		Gather: func(context.Context, *slinkyv1beta1.RestApi) (int, error) { return 0, nil },
		Decide: func(int) *Plan { return &Plan{} },
		Report: func(obj *slinkyv1beta1.RestApi, o Outcome[int, *Plan, string]) Report {
			obj.Status.ObservedGeneration = obj.Generation
			w.reports = append(w.reports, o)
			return Report{}
		},
		Prunes: []client.Object{&corev1.ConfigMap{}},
	}
	return w
}

func ownerOf(o client.Object) []string {
	if owner := metav1.GetControllerOf(o); owner != nil {
		return []string{string(owner.UID)}
	}
	return nil
}

// watch notes what is written, and refuses it where a test wants that.
func (w *world) watch() interceptor.Funcs {
	note := func(verb string, o any) error {
		name := strings.TrimPrefix(strings.TrimPrefix(strings.ToLower(typeName(o)), "*"), "v1.")
		w.writes = append(w.writes, verb+" "+name)
		return w.refuse
	}
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if err := note("create", o); err != nil {
				return err
			}
			return c.Create(ctx, o, opts...)
		},
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			if err := note("apply", o); err != nil {
				return err
			}
			return c.Apply(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if err := note("patch", o); err != nil {
				return err
			}
			return c.Patch(ctx, o, patch, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if err := note("delete", o); err != nil {
				return err
			}
			return c.Delete(ctx, o, opts...)
		},
	}
}

// reconcile takes the object through one pass.
func (w *world) reconcile() (ctrl.Result, error) {
	w.t.Helper()
	return w.kind.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: "api"}})
}

// pass is a reconcile that must succeed.
func (w *world) pass() ctrl.Result {
	w.t.Helper()
	result, err := w.reconcile()
	if err != nil {
		w.t.Fatal(err)
	}
	return result
}

// condition returns one condition of the object as "Status Reason: message".
func (w *world) condition(kind string) string {
	w.t.Helper()
	var obj slinkyv1beta1.RestApi
	if err := w.client.Get(w.t.Context(), client.ObjectKey{Namespace: "ns", Name: "api"}, &obj); err != nil {
		w.t.Fatal(err)
	}
	c := meta.FindStatusCondition(obj.Status.Conditions, kind)
	if c == nil {
		return ""
	}
	if c.ObservedGeneration != 3 {
		w.t.Errorf("condition %s speaks of generation %d", kind, c.ObservedGeneration)
	}
	return string(c.Status) + " " + c.Reason + ": " + c.Message
}

// exists reports whether the server has an object of that name.
func (w *world) exists(obj client.Object, name string) bool {
	w.t.Helper()
	err := w.client.Get(w.t.Context(), client.ObjectKey{Namespace: "ns", Name: name}, obj)
	if client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
	return err == nil
}
