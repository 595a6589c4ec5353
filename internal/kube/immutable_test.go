// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestChangesThatKubernetesRefusesAreRecognisedWithoutAsking(t *testing.T) {
	tests := []struct {
		name   string
		object func(*engine) client.Object
		change func(client.Object)
		want   ImmutableError
	}{
		{"a StatefulSet's service", func(e *engine) client.Object { return e.statefulSet() },
			func(o client.Object) { o.(*appsv1.StatefulSet).Spec.ServiceName = "other" },
			ImmutableError{Path: "spec.serviceName", From: "controller", To: "other"}},
		{"a StatefulSet's claim grows", func(e *engine) client.Object { return e.statefulSet() },
			func(o client.Object) { o.(*appsv1.StatefulSet).Spec.VolumeClaimTemplates[0].Spec = claimSpec("8Gi") },
			ImmutableError{Path: "spec.volumeClaimTemplates"}},
		{"a StatefulSet loses its claim", func(e *engine) client.Object { return e.statefulSet() },
			func(o client.Object) { o.(*appsv1.StatefulSet).Spec.VolumeClaimTemplates = nil },
			ImmutableError{Path: "spec.volumeClaimTemplates"}},
		{"a label leaves a StatefulSet's claim", func(e *engine) client.Object { return e.statefulSet() },
			func(o client.Object) { o.(*appsv1.StatefulSet).Spec.VolumeClaimTemplates[0].Labels = nil },
			ImmutableError{Path: "spec.volumeClaimTemplates"}},
		{"a StatefulSet's pod management", func(e *engine) client.Object { return e.statefulSet() },
			func(o client.Object) { o.(*appsv1.StatefulSet).Spec.PodManagementPolicy = appsv1.ParallelPodManagement },
			ImmutableError{Path: "spec.podManagementPolicy", From: "OrderedReady", To: "Parallel"}},
		{"a Deployment's selector", func(e *engine) client.Object { return e.deployment() },
			func(o client.Object) {
				o.(*appsv1.Deployment).Spec.Selector.MatchLabels["more"] = "x"
				o.(*appsv1.Deployment).Spec.Template.Labels["more"] = "x"
			},
			ImmutableError{Path: "spec.selector"}},
		{"a Service becomes headless", func(e *engine) client.Object { return e.service("s", corev1.ServiceSpec{}) },
			func(o client.Object) { o.(*corev1.Service).Spec.ClusterIP = corev1.ClusterIPNone },
			ImmutableError{Path: "spec.clusterIP", To: "None"}},
		{"a headless Service gets an address", func(e *engine) client.Object {
			return e.service("s", corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone})
		},
			func(o client.Object) { o.(*corev1.Service).Spec.ClusterIP = "" },
			ImmutableError{Path: "spec.clusterIP", From: "None"}},
		{"an immutable ConfigMap's data", func(e *engine) client.Object { return e.kinds()["ConfigMap with bytes"] },
			func(o client.Object) { o.(*corev1.ConfigMap).BinaryData = map[string][]byte{"b": {1}} },
			ImmutableError{Path: "binaryData"}},
		{"a Secret's type", func(e *engine) client.Object { return e.kinds()["Secret"] },
			func(o client.Object) { o.(*corev1.Secret).Type = "other" },
			ImmutableError{Path: "type"}},
		{"a claim shrinks", func(e *engine) client.Object { return e.kinds()["PersistentVolumeClaim"] },
			func(o client.Object) { o.(*corev1.PersistentVolumeClaim).Spec = claimSpec("256Mi") },
			ImmutableError{Path: "spec.resources.requests.storage", From: "512Mi", To: "256Mi"}},
		{"a binding's role", func(e *engine) client.Object { return e.kinds()["RoleBinding"] },
			func(o client.Object) { o.(*rbacv1.RoleBinding).RoleRef.Name = "admin" },
			ImmutableError{Path: "roleRef.name", From: "role", To: "admin"}},
		{"a Job's image", func(e *engine) client.Object { return e.job() },
			func(o client.Object) { setJobImage(o, "other") },
			ImmutableError{Path: "spec.template"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := newEngine(t)
			obj := tt.object(e)
			e.apply(obj)
			e.server.Writes.Reset()
			tt.change(obj)
			free := e.configMap(nil)
			free.Name = "free"
			_, err := e.Apply(t.Context(), e.owner, free, obj)
			got := expectError[*ImmutableError](t, err)
			if got.Path != tt.want.Path || (tt.want.From != "" && got.From != tt.want.From) || got.To != tt.want.To || got.WayOut == "" {
				t.Errorf("got %v, want path %q from %q to %q", got, tt.want.Path, tt.want.From, tt.want.To)
			}
			e.server.Writes.ExpectNone(t)
			expectProblem(t, err, ReasonImmutable)
		})
	}
}

func TestAnImmutableChangeThatOnlyTheServerKnowsIsReportedAsOne(t *testing.T) {
	e := newEngine(t)
	job := e.job()
	e.apply(job)
	job.Spec.Template.Spec.Containers[0].Env = nil // a removal: everything still desired is there
	_, err := e.Apply(t.Context(), e.owner, job)
	if got := expectError[*ImmutableError](t, err); got.Path != "spec.template" {
		t.Errorf("got %v", got)
	}
}

func TestAStatefulSetIsRecreatedWithoutItsPods(t *testing.T) {
	e := newEngine(t)
	set := e.statefulSet()
	e.apply(set)
	old := e.live(set)
	set.Spec.ServiceName = "other"
	e.server.Writes.Reset()
	if got := e.apply(Recreate(set)); got.Action != Recreated || got.Path != "spec.serviceName" {
		t.Fatalf("got %+v", got)
	}
	if writes := e.server.Writes.All(); len(writes) != 1 || writes[0].Method != http.MethodDelete {
		t.Errorf("it asked for what is refused: %v", writes)
	}
	dying := e.live(set)
	if diff := cmp.Diff([]string{metav1.FinalizerOrphanDependents}, dying.GetFinalizers()); diff != "" || dying.GetDeletionTimestamp() == nil {
		t.Fatalf("pods are not orphaned: %s", diff)
	}
	e.see(dying)
	e.server.Writes.Reset()
	if got := e.apply(Recreate(set)); got.Action != Waiting {
		t.Errorf("while the old one is going: got %+v", got)
	}
	e.server.Writes.ExpectNone(t)

	// What the garbage collector does when it has orphaned the pods.
	dying.SetFinalizers(nil)
	if err := e.outsider.Update(t.Context(), dying); err != nil {
		t.Fatal(err)
	}
	e.gone(set)
	if got := e.apply(Recreate(set)); got.Action != Created {
		t.Errorf("when the old one is gone: got %+v", got)
	}
	if live := e.live(set).(*appsv1.StatefulSet); live.UID == old.GetUID() || live.Spec.ServiceName != "other" {
		t.Errorf("got UID %s (was %s), service %s", live.UID, old.GetUID(), live.Spec.ServiceName)
	}
}

func TestAJobIsRecreatedAtOnce(t *testing.T) {
	e := newEngine(t)
	job := e.job()
	e.apply(job)
	live := e.live(job)
	live.SetFinalizers(nil)
	if err := e.outsider.Update(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	e.see(live)
	setJobImage(job, "other")
	if got := e.apply(Recreate(job)); got.Action != Recreated {
		t.Fatalf("got %+v", got)
	}
	if now := e.live(job); now.GetUID() == live.GetUID() {
		t.Error("still the same Job")
	}
	e.server.Writes.Reset()
	e.apply(Recreate(job))
	e.server.Writes.ExpectNone(t)
}

func TestDataAndKeysAreNeverRecreated(t *testing.T) {
	e := newEngine(t)
	claim := e.kinds()["PersistentVolumeClaim"].(*corev1.PersistentVolumeClaim)
	key := &corev1.Secret{ObjectMeta: e.meta("jwt"), Type: "a", Data: map[string][]byte{"jwt.key": {1}}}
	key.Labels[KeyLabel] = ""
	e.apply(claim, key)
	e.server.Writes.Reset()
	claim.Spec, key.Type = claimSpec("1Mi"), "b"
	for _, obj := range []client.Object{claim, key} {
		_, err := e.Apply(t.Context(), e.owner, Recreate(obj))
		expectProblem(t, err, ReasonImmutable)
	}
	e.server.Writes.ExpectNone(t)
}

func setJobImage(o client.Object, image string) {
	template := jobTemplate(o)
	template.Spec.Containers[0].Image = image
}
