// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/coxswain-hpc/coxswain/api/embedded"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/reconcile/reference"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmd"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// rivals are NodeSets whose workers have one name in Slurm, gpu-0. Their cache shows no pod until shown is true.
type rivals struct {
	*reconciler
	t      *testing.T
	server client.Client
	shown  bool
	// open lets pods be made; before, whoever makes one waits. answer is the answer to the first creation.
	open   chan struct{}
	answer error
}

func newRivals(t *testing.T) *rivals {
	t.Helper()
	scheme := runtime.NewScheme()
	utilruntime.Must(corev1.AddToScheme(scheme))
	utilruntime.Must(slinkyv1beta1.AddToScheme(scheme))
	v := &rivals{t: t, open: make(chan struct{})}
	v.server = fake.NewClientBuilder().WithScheme(scheme).WithIndex(&corev1.Pod{}, workerpod.SlurmNodeIndex, func(o client.Object) []string {
		pod, _ := o.(*corev1.Pod)
		return []string{workerpod.SlurmNodeKey(pod.Labels[slinkyv1beta1.LabelCluster], workerpod.SlurmNode(pod))}
	}).Build()
	cached := interceptor.NewClient(v.server.(client.WithWatch), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if !v.shown {
				return nil
			}
			return c.List(ctx, list, options...)
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			<-v.open
			if answer := v.answer; answer != nil {
				v.answer = nil
				return answer
			}
			return c.Create(ctx, o, options...)
		},
	})
	v.reconciler = &reconciler{}
	v.Reader, v.Clock = reference.Reader{Client: cached, Live: v.server}, clocktesting.NewFakePassiveClock(time.Unix(1795172262, 0))
	v.Applier, v.Recorder = kube.NewApplier(cached, v.server), events.NewFakeRecorder(16)
	return v
}

// create makes the worker of a NodeSet, and returns its problems.
func (v *rivals) create(set string) string {
	n := &slinkyv1beta1.NodeSet{ObjectMeta: metav1.ObjectMeta{Namespace: "slurm", Name: set, UID: types.UID(set)}}
	n.Spec.ControllerRef.Name = "demo"
	n.Spec.Template.Spec = &embedded.PodSpec{RawExtension: runtime.RawExtension{Raw: []byte(`{"hostname": "gpu-"}`)}}
	c := &slinkyv1beta1.Controller{ObjectMeta: metav1.ObjectMeta{Namespace: "slurm", Name: "demo"}}
	err := v.createAll(v.t.Context(), slurmd.Input{NodeSet: n, Controller: c}, []workerpod.Place{{}}, "1")
	problems, rest := problem.FromError(err)
	if rest != nil && !apierrors.IsForbidden(rest) {
		v.t.Errorf("NodeSet %s: %v", set, rest)
	}
	return problems.Message()
}

// workers returns the names of all pods.
func (v *rivals) workers() []string {
	v.t.Helper()
	var pods corev1.PodList
	if err := v.server.List(v.t.Context(), &pods); err != nil {
		v.t.Fatal(err)
	}
	var names []string
	for i := range pods.Items {
		names = append(names, pods.Items[i].Name)
	}
	return names
}

func (v *rivals) expect(want ...string) {
	v.t.Helper()
	if diff := cmp.Diff(want, v.workers()); diff != "" {
		v.t.Errorf("workers (-want +got):\n%s", diff)
	}
}

// atOnce has both make their worker before either sees the other's.
func (v *rivals) atOnce() (said map[string]string) {
	said = map[string]string{}
	type answer struct{ set, text string }
	answers := make(chan answer, 2)
	for _, set := range []string{"v", "w"} {
		go func() { answers <- answer{set, v.create(set)} }()
		synctest.Wait() // it makes the pod, or waits for the other one
	}
	close(v.open)
	for range 2 {
		a := <-answers
		said[a.set] = a.text
	}
	return said
}

func TestOfTwoNodeSetsThatMakeWorkersOfOneNameInTheSameInstantOneDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newRivals(t)
		said := v.atOnce()
		v.expect("v-0")
		if want := "Pod w-0: a worker of NodeSet v has host name gpu-0 as well"; said["v"] != "" || !strings.Contains(said["w"], want) {
			t.Errorf("v says %q, w says %q, want %q", said["v"], said["w"], want)
		}
	})
}

func TestANameIsFreeWhenTheOtherWorkerWasNotMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newRivals(t)
		v.answer = apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "v-0", errors.New("quota"))
		if said := v.atOnce(); said["w"] != "" {
			t.Errorf("w says %q", said["w"])
		}
		v.expect("w-0")
	})
}

func TestANameIsTakenUntilTheWorkerIsGone(t *testing.T) {
	v := newRivals(t)
	close(v.open)
	v.create("v")
	if said := v.create("w"); !strings.Contains(said, "NodeSet v") {
		t.Errorf("while the cache does not show the other worker: %q", said)
	}
	v.shown = true
	pod := &corev1.Pod{}
	if err := v.server.Get(t.Context(), client.ObjectKey{Namespace: "slurm", Name: "v-0"}, pod); err != nil {
		t.Fatal(err)
	}
	set := &slinkyv1beta1.NodeSet{ObjectMeta: metav1.ObjectMeta{Namespace: "slurm", Name: "v", UID: "v"}}
	set.Spec.ControllerRef.Name = "demo"
	if v.names.seen(set, []corev1.Pod{*pod}); len(v.names.by) > 0 {
		t.Errorf("at rest names are taken: %v", v.names.by)
	}
	if said := v.create("w"); !strings.Contains(said, "NodeSet v") {
		t.Errorf("while the cache shows the other worker: %q", said)
	}
	pod.OwnerReferences = nil
	if err := v.server.Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if said := v.create("w"); !strings.Contains(said, "Pod v-0, which belongs to no NodeSet any more, has host name gpu-0") {
		t.Errorf("when nobody owns the other worker: %q", said)
	}
	if err := v.server.Delete(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if said := v.create("w"); said != "" {
		t.Errorf("when the other worker is gone: %q", said)
	}
	v.expect("w-0")
}

func TestAWorkerThatWentBeforeTheCacheShowedItHasNoName(t *testing.T) {
	v := newRivals(t)
	close(v.open)
	v.create("v")
	if err := v.server.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "slurm", Name: "v-0"}}); err != nil {
		t.Fatal(err)
	}
	if said := v.create("w"); said != "" {
		t.Errorf("w says %q", said)
	}
	v.expect("w-0")
}

func TestWorkersOnTheHostNetworkAreCalledAfterTheirKubernetesNode(t *testing.T) {
	for _, tt := range []struct{ name, bound, on, want string }{
		{"the scheduler decides where a worker goes that may go anywhere", "", "", ""},
		{"a worker of a Kubernetes node is called after it before it gets there", "a.example.org", "", "a.example.org"},
		{"a worker that may go anywhere is called after the Kubernetes node that it has got to", "", "b", "b"},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "w-0"}, Spec: corev1.PodSpec{HostNetwork: true, Hostname: "gpu-0", NodeName: tt.on}}
		if tt.bound != "" {
			pod.Annotations = map[string]string{slinkyv1beta1.AnnotationNode: tt.bound}
		}
		if got := nameInSlurm(pod); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
