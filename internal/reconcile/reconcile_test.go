// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/render"
)

func typeName(o any) string { return fmt.Sprintf("%T", o) }

func configMap(name string, owned bool) *corev1.ConfigMap {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Data: map[string]string{"a": "b"}}
	if owned {
		yes := true
		cm.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: slinkyv1beta1.GroupVersion.String(), Kind: "RestApi", Name: "api", UID: "uid-api", Controller: &yes,
		}}
	}
	return cm
}

func TestAPassAppliesPrunesAndReports(t *testing.T) {
	w := newWorld(t, configMap("old", true), configMap("foreign", false), configMap("kept", true))
	w.kind.Decide = func(int) *Plan {
		p := &Plan{Keep: []client.Object{configMap("kept", false)}}
		p.Add(configMap("new", false))
		p.Ignore(true, "spec.x")
		return p
	}
	w.pass()
	if !w.exists(&corev1.ConfigMap{}, "new") || w.exists(&corev1.ConfigMap{}, "old") || !w.exists(&corev1.ConfigMap{}, "foreign") || !w.exists(&corev1.ConfigMap{}, "kept") {
		t.Errorf("it wrote %q", w.writes)
	}
	if got := w.condition("Ready"); got != "True Available: everything matches the spec" {
		t.Error(got)
	}
	if got := w.condition("FieldsIgnored"); !strings.HasPrefix(got, "True FieldUnsupported: ") || !strings.Contains(got, "spec.x") {
		t.Error(got)
	}
	if len(w.reports) != 1 || !w.reports[0].Driven {
		t.Errorf("reports %+v", w.reports)
	}
	w.writes = nil
	w.pass()
	if len(w.writes) > 0 {
		t.Errorf("a second pass over the same wrote %q", w.writes)
	}
}

func TestWithProblemsNothingIsApplied(t *testing.T) {
	w := newWorld(t, configMap("old", true))
	w.kind.Decide = func(int) *Plan {
		p := &Plan{}
		p.Add(configMap("new", false))
		p.Problems = problem.List{problem.Errorf("spec.a", "InvalidSpec", "must be b")}
		return p
	}
	w.pass()
	if w.exists(&corev1.ConfigMap{}, "new") || !w.exists(&corev1.ConfigMap{}, "old") {
		t.Errorf("it wrote %q", w.writes)
	}
	if got := w.condition("Stalled"); got != "True InvalidSpec: spec.a: must be b" {
		t.Error(got)
	}
	if w.reports[0].Driven {
		t.Error("the plan counts as carried out")
	}
	select {
	case e := <-w.events.Events:
		if e != "Warning InvalidSpec spec.a: must be b" {
			t.Error(e)
		}
	default:
		t.Error("no event tells of it")
	}
}

func TestGeneratedKeysAreReadInTheNextPass(t *testing.T) {
	w := newWorld(t)
	gathered := 0
	w.kind.Gather = func(context.Context, *slinkyv1beta1.RestApi) (int, error) { gathered++; return gathered, nil }
	w.kind.Decide = func(pass int) *Plan {
		p := &Plan{}
		if pass == 1 {
			p.Problems = problem.List{problem.Waitingf("spec.key", "KeyMissing", "Secret keys does not exist")}
		}
		p.Ensure(true, render.Secret{Name: "keys", Key: "k", Content: render.RandomBytes})
		return p
	}
	if result := w.pass(); result.RequeueAfter <= 0 {
		t.Error("no other pass follows")
	}
	var first corev1.Secret
	if !w.exists(&first, "keys") || len(first.Data["k"]) != 1024 {
		t.Fatalf("it wrote %q", w.writes)
	}
	if got := w.condition("Ready"); got != "" || len(w.reports) > 0 {
		t.Errorf("the pass that made the keys reports %q", got)
	}
	w.pass()
	var second corev1.Secret
	if !w.exists(&second, "keys") || string(second.Data["k"]) != string(first.Data["k"]) {
		t.Error("the key has changed")
	}
	if got := w.condition("Ready"); !strings.HasPrefix(got, "True") || gathered != 2 {
		t.Errorf("after %d passes: %s", gathered, got)
	}
}

func TestWhatKeepsAPlanFromBeingCarriedOutIsTold(t *testing.T) {
	gone := errors.New("connection refused")
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "new", errors.New("quota"))
	for name, test := range map[string]struct {
		drive, observe error
		ready          string
		fails          bool
	}{
		"a problem that the server finds joins those of the plan": {
			drive: problem.Errorf("Service x", "ConflictingController", "is somebody else's"), ready: "False ConflictingController: Service x: is somebody else's",
		},
		"what does not answer is tried again": {drive: gone, ready: "True Available: everything matches the spec", fails: true},
		"what is forbidden is told": {
			drive: forbidden, ready: `False ApplyFailed: objects: configmaps "new" is forbidden: quota`, fails: true,
		},
		"what cannot be observed is not called ready": {observe: gone, ready: "False Waiting: workload: its state could not be read", fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.kind.Drive = func(context.Context, *slinkyv1beta1.RestApi, int, *Plan, *string) error { return test.drive }
			w.kind.Observe = func(context.Context, *slinkyv1beta1.RestApi, int, *Plan, *string) error { return test.observe }
			if _, err := w.reconcile(); (err != nil) != test.fails {
				t.Errorf("the pass returned %v", err)
			}
			if got := w.condition("Ready"); got != test.ready {
				t.Errorf("Ready is %q, want %q", got, test.ready)
			}
			if w.reports[0].Driven != (test.drive == nil) {
				t.Errorf("driven: %v", w.reports[0].Driven)
			}
		})
	}
}

func TestFactsThatCannotBeGatheredChangeNothing(t *testing.T) {
	w := newWorld(t)
	w.kind.Gather = func(context.Context, *slinkyv1beta1.RestApi) (int, error) { return 0, errors.New("no answer") }
	if _, err := w.reconcile(); err == nil || err.Error() != "gathering the facts about ns/api: no answer" {
		t.Errorf("the pass returned %v", err)
	}
	if len(w.writes)+len(w.reports) > 0 {
		t.Errorf("it wrote %q and reported %d times", w.writes, len(w.reports))
	}
}

func TestKeysThatCannotBeMadeAreTold(t *testing.T) {
	w := newWorld(t)
	w.refuse = apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "keys", errors.New("quota"))
	w.kind.Decide = func(int) *Plan {
		p := &Plan{}
		p.Ensure(true, render.Secret{Name: "keys", Key: "k", Content: render.RandomText})
		return p
	}
	w.kind.Drive = func(context.Context, *slinkyv1beta1.RestApi, int, *Plan, *string) error {
		t.Error("the plan is carried out without its keys")
		return nil
	}
	if _, err := w.reconcile(); !apierrors.IsForbidden(err) {
		t.Errorf("the pass returned %v", err)
	}
	if got := w.condition("Ready"); got != `False ApplyFailed: objects: creating Secret ns/keys: secrets "keys" is forbidden: quota` {
		t.Error(got)
	}
}

func TestKeysThatCouldNotBeMadeAtOnceAreNotCalledMissing(t *testing.T) {
	w := newWorld(t)
	w.refuse = errors.New("the server is busy")
	w.kind.Decide = func(int) *Plan {
		p := &Plan{}
		p.Problems = problem.List{problem.Waitingf("spec.key", "KeyMissing", "Secret keys does not exist")}
		p.Ensure(true, render.Secret{Name: "keys", Key: "k", Content: render.RandomText})
		return p
	}
	if _, err := w.reconcile(); err == nil {
		t.Error("the pass returned no error")
	}
	if got := w.condition("Ready"); got != "" || len(w.reports) > 0 {
		t.Errorf("it tells %q", got)
	}
}

func TestKeysThatAnotherOwnerHasMadeAreReadInTheNextPass(t *testing.T) {
	shared := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "keys", Labels: map[string]string{kube.KeyLabel: "generated"}}}
	w := newWorld(t, shared)
	w.kind.Decide = func(int) *Plan {
		p := &Plan{}
		p.Ensure(true, render.Secret{Name: "keys", Key: "k", Content: render.RandomText})
		return p
	}
	if result := w.pass(); result.RequeueAfter <= 0 || len(w.reports) > 0 {
		t.Error("what was gathered before is reported")
	}
	if w.pass(); len(w.reports) != 1 {
		t.Errorf("the next pass reported %d times", len(w.reports))
	}
}

func TestKeysThatTwoOwnersShareAtOnceAreReadInTheNextPass(t *testing.T) {
	keys := schema.GroupResource{Resource: "secrets"}
	for name, refusal := range map[string]error{
		"another owner was first":    apierrors.NewConflict(keys, "keys", errors.New("the object has been modified")),
		"another owner took it away": apierrors.NewNotFound(keys, "keys"),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "keys", Labels: map[string]string{kube.KeyLabel: "generated"}}})
			w.kind.Decide = func(int) *Plan {
				p := &Plan{}
				p.Ensure(true, render.Secret{Name: "keys", Key: "k", Content: render.RandomText})
				return p
			}
			w.refuse = refusal
			if result := w.pass(); result.RequeueAfter <= 0 || len(w.reports) > 0 {
				t.Error("the pass that did not own the Secret is not repeated")
			}
			w.refuse = nil
			w.pass()
			var secret corev1.Secret
			if !w.exists(&secret, "keys") || len(secret.OwnerReferences) != 1 {
				t.Errorf("the Secret is owned by %v", secret.OwnerReferences)
			}
		})
	}
}

func TestOnlyWhatTheObjectControlsIsDeleted(t *testing.T) {
	w := newWorld(t, configMap("ours", true), configMap("foreign", false))
	w.kind.Prunes = nil
	w.kind.Decide = func(int) *Plan {
		return &Plan{Delete: []client.Object{configMap("ours", false), configMap("foreign", false), configMap("none", false)}}
	}
	w.pass()
	if w.exists(&corev1.ConfigMap{}, "ours") || !w.exists(&corev1.ConfigMap{}, "foreign") {
		t.Errorf("it wrote %q", w.writes)
	}
}

func TestAReportIsWrittenAndDropsWhatNoLongerApplies(t *testing.T) {
	w := newWorld(t)
	again := w.kind.Clock.Now().Add(time.Minute)
	report := Report{
		Parts: []kube.Part{{Name: "slurmrestd", Reason: "PodsNotReady", Message: "0 of 1"}}, Again: again,
		Events: []Event{{Type: corev1.EventTypeWarning, Reason: "Lost", Action: "Observe", Note: "it is gone"}},
	}
	report.SetCondition("Mine", metav1.ConditionTrue, "Because", "it is")
	w.kind.Report = func(*slinkyv1beta1.RestApi, Outcome[int, *Plan, string]) Report { return report }
	if result := w.pass(); result.RequeueAfter != time.Minute {
		t.Errorf("looked at again after %s", result.RequeueAfter)
	}
	if got := w.condition("Mine"); got != "True Because: it is" {
		t.Error(got)
	}
	if got := w.condition("Ready"); got != "False PodsNotReady: slurmrestd: 0 of 1" {
		t.Error(got)
	}
	if e := <-w.events.Events; e != "Warning Lost it is gone" {
		t.Error(e)
	}
	report = Report{Drop: []string{"Mine"}}
	w.pass()
	if got := w.condition("Mine"); got != "" {
		t.Errorf("it is still there: %s", got)
	}
}

func TestAnObjectIsLeftAloneWhileItPauses(t *testing.T) {
	w := newWorld(t)
	w.kind.Pause = func(types.NamespacedName) time.Duration { return time.Second }
	if result := w.pass(); result.RequeueAfter != time.Second || len(w.reports) > 0 {
		t.Errorf("it is looked at: %+v", result)
	}
}

func TestAnObjectThatIsBeingDeletedIsFinalized(t *testing.T) {
	w := newWorld(t)
	var obj slinkyv1beta1.RestApi
	if err := w.client.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "api"}, &obj); err != nil {
		t.Fatal(err)
	}
	obj.Finalizers = []string{"x/y"}
	if err := errors.Join(w.client.Update(t.Context(), &obj), w.client.Delete(t.Context(), &obj)); err != nil {
		t.Fatal(err)
	}
	w.pass() // without Finalize nothing happens
	finalized := 0
	w.kind.Finalize = func(context.Context, *slinkyv1beta1.RestApi) (time.Time, error) {
		finalized++
		return w.kind.Clock.Now().Add(2 * time.Second), nil
	}
	if result := w.pass(); finalized != 1 || result.RequeueAfter != 2*time.Second || len(w.reports) > 0 {
		t.Errorf("finalized %d times, %+v", finalized, result)
	}
}
