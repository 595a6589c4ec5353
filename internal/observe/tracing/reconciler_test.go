// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/golden"
)

// answers is a server that answers every request with a status, and no other server is asked.
type answers int

func (a answers) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: int(a), Body: io.NopCloser(strings.NewReader(`{"errors":[]}`))}, nil
}

// cluster returns a SlurmCluster with a Controller, a NodeSet and a worker, and a client that has them.
func cluster(t testing.TB, created time.Time) (client.Client, *nebiusv1.SlurmCluster) {
	t.Helper()
	meta := func(name string, owner client.Object, kind string) metav1.ObjectMeta {
		m := metav1.ObjectMeta{Namespace: "slurm", Name: name, UID: types.UID("uid-" + name + kind), Generation: 1, CreationTimestamp: metav1.NewTime(created)}
		if owner != nil {
			yes := true
			m.OwnerReferences = []metav1.OwnerReference{{APIVersion: owner.GetObjectKind().GroupVersionKind().GroupVersion().String(), Kind: kind, Name: owner.GetName(), UID: owner.GetUID(), Controller: &yes}}
		}
		return m
	}
	whole := &nebiusv1.SlurmCluster{TypeMeta: metav1.TypeMeta{APIVersion: nebiusv1.GroupVersion.String(), Kind: "SlurmCluster"}, ObjectMeta: meta("demo", nil, "")}
	set := &slinkyv1beta1.NodeSet{TypeMeta: metav1.TypeMeta{APIVersion: slinkyv1beta1.GroupVersion.String(), Kind: "NodeSet"}, ObjectMeta: meta("cpu", whole, "SlurmCluster")}
	objects := []client.Object{
		whole, set, &slinkyv1beta1.Controller{ObjectMeta: meta("demo", whole, "SlurmCluster")},
		&corev1.Pod{ObjectMeta: meta("cpu-0", set, "NodeSet")}, &slinkyv1beta1.Controller{ObjectMeta: meta("alone", nil, "")},
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, nebiusv1.AddToScheme, slinkyv1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build(), whole
}

// send makes a request with the context of a pass.
func send(ctx context.Context, t *testing.T, transport http.RoundTripper, method, url, kind string) {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader("secret"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", kind)
	r.Header.Set("X-Slurm-User-Token", "secret")
	answer, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(answer.Body); err != nil {
		t.Fatal(err)
	}
	if err := answer.Body.Close(); err != nil {
		t.Fatal(err)
	}
}

// A change of a SlurmCluster is followed through what it composes, to the API server and to Slurm.
func TestAChangeIsFollowedToItsEffect(t *testing.T) {
	traces, spans, clock := recorded(t)
	reader, whole := cluster(t, noon().Add(-time.Hour))
	kubernetes, slurm := traces.Kubernetes(answers(200)), traces.Slurm("slurm/demo", answers(404))
	var logs strings.Builder
	ctx := log.IntoContext(t.Context(), funcr.New(func(_, args string) { logs.WriteString(args + "\n") }, funcr.Options{}))
	pass := func(controller string, object client.Object, name string, do func(ctx context.Context) (reconcile.Result, error)) {
		r := traces.Reconciler(controller, object, reader, reconcile.Func(func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) { return do(ctx) }))
		_, _ = r.Reconcile(ctx, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "slurm", Name: name}})
	}
	nothing := func(context.Context) (reconcile.Result, error) { return reconcile.Result{}, nil }
	all := func() {
		pass("SlurmCluster", &nebiusv1.SlurmCluster{}, "demo", func(ctx context.Context) (reconcile.Result, error) {
			send(ctx, t, kubernetes, "PATCH", "https://api/apis/slinky.slurm.net/v1beta1/namespaces/slurm/controllers/demo?fieldManager=coxswain", "application/apply-patch+yaml")
			return reconcile.Result{RequeueAfter: time.Second}, nil
		})
		pass("Controller", &slinkyv1beta1.Controller{}, "demo", func(ctx context.Context) (reconcile.Result, error) {
			log.FromContext(ctx).Info("Applied what was rendered")
			send(ctx, t, kubernetes, "PATCH", "https://api/api/v1/namespaces/slurm/configmaps/demo-config", "application/apply-patch+yaml")
			send(ctx, t, kubernetes, "PATCH", "https://api/apis/slinky.slurm.net/v1beta1/namespaces/slurm/controllers/demo/status", "application/merge-patch+json")
			send(ctx, t, kubernetes, "GET", "https://api/api/v1/namespaces/slurm/secrets/keys", "")
			return reconcile.Result{}, nil
		})
		pass("NodeSet", &slinkyv1beta1.NodeSet{}, "cpu", nothing)
		pass("worker", &corev1.Pod{}, "cpu-0", func(ctx context.Context) (reconcile.Result, error) {
			send(ctx, t, slurm, "POST", "http://slurm:6820/slurm/v0.0.45/node/cpu-0", "application/json")
			return reconcile.Result{}, errors.New("draining cpu-0: no")
		})
		pass("Controller", &slinkyv1beta1.Controller{}, "alone", nothing)
		pass("Controller", &slinkyv1beta1.Controller{}, "gone", nothing)
	}
	all() // after a restart: what is there is no change
	before := tree(spans.GetSpans())
	spans.Reset()
	whole.Generation = 2
	if err := reader.Update(t.Context(), whole); err != nil {
		t.Fatal(err)
	}
	logs.Reset()
	all()
	changed := spans.GetSpans()
	spans.Reset()
	clock.SetTime(noon().Add(changeTimeout))
	all()
	golden.Check(t, "change.txt", []byte("# after a restart\n"+before+"# after a change of the SlurmCluster\n"+tree(changed)+"# ten minutes later\n"+tree(spans.GetSpans())))

	digest := sha256.Sum256([]byte(string(whole.UID) + "/2"))
	want := hex.EncodeToString(digest[:16])
	if !strings.Contains(logs.String(), `"traceID"="`+want+`"`) {
		t.Errorf("the log of a pass lacks trace %s: %s", want, logs.String())
	}
	for _, s := range append(changed, spans.GetSpans()...) {
		for _, a := range s.Attributes {
			if strings.Contains(a.Value.String(), "secret") {
				t.Errorf("%s has %s=%s", s.Name, a.Key, a.Value.String())
			}
		}
	}
}

func TestWhatIsAChange(t *testing.T) {
	controller := func(uid types.UID, generation int64, age time.Duration) *slinkyv1beta1.Controller {
		return &slinkyv1beta1.Controller{ObjectMeta: metav1.ObjectMeta{Namespace: "slurm", Name: "demo", UID: uid, Generation: generation, CreationTimestamp: metav1.NewTime(noon().Add(-age))}}
	}
	kind := slinkyv1beta1.GroupVersion.WithKind("Controller").GroupKind()
	for _, tt := range []struct {
		name   string
		before *slinkyv1beta1.Controller
		now    *slinkyv1beta1.Controller
		part   bool
		want   bool
	}{
		{"a new object", nil, controller("a", 1, time.Second), false, true},
		{"an object that was there before this process", nil, controller("a", 7, time.Hour), false, false},
		{"another generation", controller("a", 7, time.Hour), controller("a", 8, time.Hour), false, true},
		{"the same generation", controller("a", 7, time.Hour), controller("a", 7, time.Hour), false, false},
		{"another object of the name", controller("a", 7, time.Hour), controller("b", 1, time.Second), false, true},
		{"another generation that is part of another change", controller("a", 7, time.Hour), controller("a", 8, time.Hour), true, false},
		{"a new object that is part of another change", nil, controller("a", 1, time.Second), true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			traces, spans, _ := recorded(t)
			if tt.before != nil {
				traces.changes.note(kind, tt.before, false)
			}
			got := traces.changes.note(kind, tt.now, tt.part)
			if open := traces.changes.open(got); open != tt.want || len(spans.GetSpans()) != map[bool]int{true: 1}[tt.want] {
				t.Errorf("it is a change: %t, with spans %v", open, spans.GetSpans())
			}
			if got.first.TraceID() != of(tt.now.UID, tt.now.Generation).trace || !got.first.IsValid() {
				t.Errorf("its trace is %s", got.first.TraceID())
			}
			traces.changes.forget(kind, client.ObjectKeyFromObject(tt.now))
			if n := len(traces.changes.known); n > 0 {
				t.Errorf("%d objects are remembered for ever", n)
			}
		})
	}
}

func TestNothingIsTracedWhereTracesAreOff(t *testing.T) {
	var off *Tracing
	calls := 0
	next := reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
		calls++
		return reconcile.Result{}, nil
	})
	r := off.Reconciler("Controller", &slinkyv1beta1.Controller{}, nil, next)
	ctx, req := t.Context(), reconcile.Request{}
	if n := testing.AllocsPerRun(100, func() { _, _ = r.Reconcile(ctx, req) }); n > 0 || calls == 0 {
		t.Errorf("a pass allocates %v times", n)
	}
	if _, same := r.(reconcile.Func); !same {
		t.Errorf("there is a %T around the reconciler", r)
	}
	if err := off.Close(); err != nil {
		t.Error(err)
	}
}

// FuzzTemplates checks that no name of an object is part of the template of a path.
func FuzzTemplates(f *testing.F) {
	f.Add("cpu-0")
	f.Add("a/b")
	f.Add("")
	f.Fuzz(func(t *testing.T, name string) {
		for _, kind := range []string{"node", "job", "reservation"} {
			got := template("/slurm/v0.0.45/" + kind + "/" + name)
			if got != "/slurm/v0.0.45/"+kind+"/{name}" && strings.Trim(name, "/") != "" && !strings.HasPrefix(name, "/") {
				t.Errorf("%q becomes %s", name, got)
			}
		}
	})
}
