// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcluster

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/reconcile/reference"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	nebiusnodeset "github.com/coxswain-hpc/coxswain/internal/controller/nebius/nodeset"
	"github.com/coxswain-hpc/coxswain/internal/controller/nebius/slurmcluster"
	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
)

// world is a server with both controllers running, and plays the user and the component controllers.
type world struct {
	t        *testing.T
	server   *apiserver.Server
	user     client.Client
	recorder *events.FakeRecorder
	// admin may do everything.
	admin *rest.Config
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldWith(t, func(*rest.Config) {})
}

// newWorldWith changes how the operator connects.
func newWorldWith(t *testing.T, change func(*rest.Config)) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, nebiusv1.AddToScheme, nebiusv1alpha1.AddToScheme, slinkyv1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	server := apiserver.Start(t)
	w := &world{t: t, server: server, user: server.Outsider(t, scheme), recorder: events.NewFakeRecorder(1000), admin: server.Config}
	server.Config = server.AsOperator(t)
	change(server.Config)
	server.Manager(t, scheme, func(mgr manager.Manager) error {
		base := reconcile.Base{
			Reader:   reference.Reader{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Metadata: mgr.GetCache()},
			Applier:  kube.NewApplier(mgr.GetClient(), mgr.GetAPIReader()),
			Recorder: w.recorder, Clock: clock.RealClock{}, Concurrency: 2,
		}
		definitions, err := kube.NewDefinitions(server.Config, mgr, slurmcluster.Definitions()...)
		return errors.Join(err,
			kube.SetupIndexes(t.Context(), mgr.GetFieldIndexer(), slurmcluster.Prunes()...),
			slurmcluster.Setup(t.Context(), mgr, base, definitions, "network.example.com"),
			nebiusnodeset.Setup(t.Context(), mgr, base),
		)
	})
	return w
}

// become gives the next manager the rights of a ServiceAccount, and no others.
func (w *world) become(account string) {
	w.server.Config = rest.CopyConfig(w.admin)
	w.server.Config.Impersonate = rest.ImpersonationConfig{
		UserName: serviceaccount.MakeUsername(w.server.Namespace, account),
		Groups:   append(serviceaccount.MakeGroupNames(w.server.Namespace), "system:authenticated"),
	}
}

func (w *world) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: w.server.Namespace, Name: name}
}

func (w *world) create(obj client.Object) {
	w.t.Helper()
	if err := w.user.Create(w.t.Context(), obj); err != nil {
		w.t.Fatal(err)
	}
}

// cluster creates a SlurmCluster.
func (w *world) cluster(name string, spec nebiusv1.SlurmClusterSpec) *nebiusv1.SlurmCluster {
	w.t.Helper()
	c := &nebiusv1.SlurmCluster{ObjectMeta: w.meta(name), Spec: spec}
	w.create(c)
	return c
}

// edit changes an object as the user does.
func edit[T client.Object](w *world, obj T, change func(T)) {
	w.t.Helper()
	apiserver.Eventually(w.t, func() error {
		if err := w.user.Get(w.t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
			return err
		}
		change(obj)
		return w.user.Update(w.t.Context(), obj)
	})
}

// await waits until an object is as ok wants it.
func await[T client.Object](w *world, obj T, ok func(T) error) {
	w.t.Helper()
	apiserver.Eventually(w.t, func() error {
		if err := w.user.Get(w.t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
			return err
		}
		return ok(obj)
	})
}

func (w *world) exists(objects ...client.Object) {
	w.t.Helper()
	for _, obj := range objects {
		await(w, obj, func(client.Object) error { return nil })
	}
}

func (w *world) gone(objects ...client.Object) {
	w.t.Helper()
	for _, obj := range objects {
		apiserver.Eventually(w.t, func() error {
			err := w.user.Get(w.t.Context(), client.ObjectKeyFromObject(obj), obj)
			if apierrors.IsNotFound(err) {
				return nil
			}
			if err != nil {
				return err
			}
			return fmt.Errorf("%T %s is still there, deleted at %v, kept by %q", obj, obj.GetName(), obj.GetDeletionTimestamp(), obj.GetFinalizers())
		})
	}
}

// reporting is a component object.
type reporting interface {
	client.Object
	GetConditions() []metav1.Condition
	SetConditions([]metav1.Condition)
}

// report plays the controller of a component: it reports that the newest spec is ready, or not.
func report[T reporting](w *world, obj T, ready bool, change func(T)) {
	w.t.Helper()
	apiserver.Eventually(w.t, func() error {
		if err := w.user.Get(w.t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
			return err
		}
		condition := metav1.Condition{
			Type: slinkyv1beta1.ConditionReady, Status: metav1.ConditionFalse, Reason: "PodsNotReady", Message: "0 pods are ready", ObservedGeneration: obj.GetGeneration(),
		}
		if ready {
			condition.Status, condition.Reason, condition.Message = metav1.ConditionTrue, "Available", "all pods are ready"
		}
		conditions := obj.GetConditions()
		meta.SetStatusCondition(&conditions, condition)
		obj.SetConditions(conditions)
		if change != nil {
			change(obj)
		}
		return w.user.Status().Update(w.t.Context(), obj)
	})
}

// condition checks one condition.
func condition(conditions []metav1.Condition, kind string, status metav1.ConditionStatus, reason, text string) error {
	c := meta.FindStatusCondition(conditions, kind)
	if c == nil {
		return fmt.Errorf("there is no condition %s", kind)
	}
	if c.Status != status || c.Reason != reason || !strings.Contains(c.Message, text) {
		return fmt.Errorf("%s is %s, %s: %s", kind, c.Status, c.Reason, c.Message)
	}
	return nil
}

// said waits for an event.
func (w *world) said(text string) {
	w.t.Helper()
	var heard []string
	apiserver.Eventually(w.t, func() error {
		for {
			select {
			case e := <-w.recorder.Events:
				heard = append(heard, e)
				if strings.Contains(e, text) {
					return nil
				}
			default:
				return fmt.Errorf("nobody said %q, but %q", text, heard)
			}
		}
	})
}

// poke changes an object's metadata, which wakes its reconciler.
func (w *world) poke(obj client.Object, n int) {
	w.t.Helper()
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{"example.org/poke":"%d"}}}`, n))
	if err := w.user.Patch(w.t.Context(), obj, patch); err != nil {
		w.t.Fatal(err)
	}
}

// quiet wakes an object's reconciler again and again and expects that nothing is written for it.
func quiet[T client.Object](w *world, obj T, settled func(T) error) {
	w.t.Helper()
	await(w, obj, settled)
	pokes := 0
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	look := func() {
		<-tick.C
		w.poke(obj, pokes)
		pokes++
		// Each look takes as long as a reconcile does, and longer when this process or the API server gets no time to run.
		await(w, obj, settled)
	}
	// Events from before obj was settled may still be on their way to the operator.
	for still, before := 0, 0; still < 75; still++ {
		look()
		if n := len(w.server.Writes.All()); n != before {
			still, before = 0, w.rests(n)
		}
		if pokes > 1000 {
			w.t.Fatalf("the operator does not come to rest; its writes: %v", w.server.Writes.All())
		}
	}
	w.server.Writes.Reset()
	for range 30 {
		look()
	}
	w.server.Writes.ExpectNone(w.t)
}

// rests waits until the operator has written nothing for ten looks, and returns the number of its writes, of which there were n. A poke
// makes a conflict of the write that it comes before: pokes that come faster than a slow operator's writes let it do none of them.
func (w *world) rests(n int) int {
	w.t.Helper()
	same := 0
	apiserver.Eventually(w.t, func() error {
		same++
		if now := len(w.server.Writes.All()); now != n {
			n, same = now, 0
		}
		if same < 10 {
			return errors.New("it writes")
		}
		return nil
	})
	return n
}

func demoSpec() nebiusv1.SlurmClusterSpec {
	return nebiusv1.SlurmClusterSpec{SlurmNodes: nebiusv1.SlurmNodes{
		Accounting: nebiusv1.Accounting{Enabled: true, EmbeddedDB: &nebiusv1.EmbeddedDB{Enabled: true}},
		Login:      nebiusv1.Login{Size: 1},
		Worker:     &nebiusv1.Worker{Size: 2},
	}}
}
