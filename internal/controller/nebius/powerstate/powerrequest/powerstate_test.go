// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package powerrequest

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
)

// world is a namespace with an ephemeral NodeSet gpu, of which some nodes run, and one cpu whose nodes always do.
type world struct {
	t       *testing.T
	client  client.WithWatch
	log     bytes.Buffer
	updates int
	// meanwhile is what another client does before the first update.
	meanwhile func()
}

func newWorld(t *testing.T, active ...int32) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := nebiusv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "ns", Name: name} }
	w := &world{t: t}
	w.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		&nebiusv1alpha1.NodeSet{ObjectMeta: meta("cpu")},
		&nebiusv1alpha1.NodeSet{ObjectMeta: meta("gpu"), Spec: nebiusv1alpha1.NodeSetSpec{EphemeralNodes: true}},
		&nebiusv1alpha1.NodeSet{ObjectMeta: meta("new"), Spec: nebiusv1alpha1.NodeSetSpec{EphemeralNodes: true}},
		&nebiusv1alpha1.NodeSetPowerState{ObjectMeta: meta("gpu"), Spec: nebiusv1alpha1.NodeSetPowerStateSpec{NodeSetRef: "gpu", ActiveNodes: active}},
	).WithInterceptorFuncs(interceptor.Funcs{
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.UpdateOption) error {
			w.updates++
			if do := w.meanwhile; do != nil {
				w.meanwhile = nil
				do()
			}
			return c.Update(ctx, o, options...)
		},
	}).Build()
	return w
}

func (w *world) find(list string) Nodes {
	w.t.Helper()
	n, err := Find(w.t.Context(), Nodes{Client: w.client, Namespace: "ns", Log: slog.New(slog.NewJSONHandler(&w.log, nil)), Every: time.Millisecond}, list)
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

func (w *world) active() []int32 {
	w.t.Helper()
	var state nebiusv1alpha1.NodeSetPowerState
	if err := w.client.Get(w.t.Context(), client.ObjectKey{Namespace: "ns", Name: "gpu"}, &state); err != nil {
		w.t.Fatal(err)
	}
	return state.Spec.ActiveNodes
}

func TestChange(t *testing.T) {
	for name, c := range map[string]struct {
		active  []int32
		list    string
		change  Change
		want    []int32
		updates int
	}{
		"resume adds": {[]int32{3}, "gpu-[0-1]", Resume, []int32{0, 1, 3}, 1},
		"resume of what is to run writes nothing": {[]int32{3, 1}, "gpu-[1,3]", Resume, []int32{3, 1}, 0},
		"suspend takes away":                      {[]int32{0, 1, 3}, "gpu-[1-2]", Suspend, []int32{0, 3}, 1},
		"suspend of the last":                     {[]int32{1}, "gpu-1", Suspend, nil, 1},
		"suspend of what is not to run":           {[]int32{1}, "gpu-2", Suspend, []int32{1}, 0},
		"what is not ephemeral is skipped":        {[]int32{1}, "cpu-0,login,other-2", Resume, []int32{1}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.active...)
			if err := w.find(c.list).Change(t.Context(), c.change); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, w.active()); diff != "" || w.updates != c.updates {
				t.Errorf("active (-want, +got):\n%s\nafter %d updates, want %d", diff, w.updates, c.updates)
			}
		})
	}
}

func TestWhatIsSkippedIsTold(t *testing.T) {
	w := newWorld(t)
	w.find("cpu-[0-1],login,other-2,gpu-1")
	for _, want := range []string{`"node":"login"`, `"nodes":"cpu-[0-1]"`, `"nodes":"other-2"`} {
		if !strings.Contains(w.log.String(), want) {
			t.Errorf("the log lacks %s:\n%s", want, &w.log)
		}
	}
	if strings.Contains(w.log.String(), "gpu") {
		t.Errorf("an ephemeral node was skipped:\n%s", &w.log)
	}
}

func TestTwoAtATimeLoseNothing(t *testing.T) {
	w := newWorld(t, 7)
	nodes := w.find("gpu-0")
	w.meanwhile = func() {
		if err := w.find("gpu-[1,7]").Change(t.Context(), Suspend); err != nil {
			t.Error(err)
		}
		if err := w.find("gpu-2").Change(t.Context(), Resume); err != nil {
			t.Error(err)
		}
	}
	if err := nodes.Change(t.Context(), Resume); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int32{0, 2}, w.active()); diff != "" {
		t.Errorf("active (-want, +got):\n%s", diff)
	}
}

func TestANodeSetWithoutPowerStateKeepsNoOtherFromItsChange(t *testing.T) {
	w := newWorld(t)
	err := w.find("gpu-1,new-1").Change(t.Context(), Resume)
	if err == nil || !strings.Contains(err.Error(), "changing NodeSetPowerState ns/new") {
		t.Errorf("the error is %v", err)
	}
	if diff := cmp.Diff([]int32{1}, w.active()); diff != "" {
		t.Errorf("active (-want, +got):\n%s", diff)
	}
}

func TestWait(t *testing.T) {
	for name, c := range map[string]struct {
		change Change
		want   string
	}{
		"for all to be added":  {Resume, "gpu-2"},
		"for none to be there": {Suspend, "gpu-[0-1]"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 0, 1)
			nodes := w.find("gpu-[0-2],cpu-9")
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			if err := nodes.Wait(ctx, c.change); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, want one with %s", err, c.want)
			}
			done := make(chan error, 1)
			go func() { done <- nodes.Wait(t.Context(), c.change) }()
			if err := nodes.Change(t.Context(), c.change); err != nil {
				t.Error(err)
			}
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}
