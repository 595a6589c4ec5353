// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

// What the API server fills in and what the methods return for an object that never saw it must be the same.
func TestDefaultsOfTheSchemaAndOfTheMethodsAgree(t *testing.T) {
	crds := loadCRDs(t)
	admitted := func(kind string, spec map[string]any) any {
		o := object(kind, spec)
		if errs := crds[kind].Create(t.Context(), o); len(errs) > 0 {
			t.Fatal(errs.ToAggregate())
		}
		return typed(t, o)
	}
	ref := map[string]any{"name": "a"}
	facts := func(objects ...any) []any {
		var out []any
		for _, o := range objects {
			switch o := o.(type) {
			case *slinkyv1beta1.Controller:
				out = append(out, o.Persistent(), o.StateClaim(), o.Replicas(), o.ExistingClaim())
			case *slinkyv1beta1.Accounting:
				out = append(out, o.DatabaseClaim())
			case *slinkyv1beta1.RestApi:
				out = append(out, o.Replicas())
			case *slinkyv1beta1.LoginSet:
				out = append(out, o.Replicas(), o.Workload(), o.Spec.Users[0].LoginShell(), o.Spec.Users[0].HomeDirectory(), o.Spec.Users[0].PrimaryGID())
			case *slinkyv1beta1.NodeSet:
				whenDeleted, whenScaled := o.ClaimRetention()
				out = append(out, o.Replicas(), o.ScalingMode(), o.UpdateType(), o.MaxUnavailable(), o.DisruptionProtection(), whenDeleted, whenScaled)
			case *slinkyv1beta1.Token:
				out = append(out, o.Refreshes(), o.Lifetime())
			}
		}
		return out
	}
	fromSchema := facts(
		admitted("Controller", map[string]any{"persistence": map[string]any{}}),
		admitted("Controller", map[string]any{"ha": map[string]any{"enabled": true}, "persistence": map[string]any{"existingClaim": "c"}}),
		admitted("Accounting", map[string]any{"embeddedDatabase": map[string]any{}}),
		admitted("RestApi", map[string]any{"controllerRef": ref}),
		admitted("LoginSet", map[string]any{"controllerRef": ref, "users": []any{map[string]any{"name": "u", "uid": int64(1000)}}}),
		admitted("NodeSet", map[string]any{"controllerRef": ref, "persistentVolumeClaimRetentionPolicy": map[string]any{}}),
		admitted("Token", map[string]any{"username": "a", "jwtKeyRef": map[string]any{"name": "a", "key": "b"}}),
	)
	fromMethods := facts(
		&slinkyv1beta1.Controller{},
		&slinkyv1beta1.Controller{Spec: slinkyv1beta1.ControllerSpec{
			HA: &slinkyv1beta1.ControllerHA{Enabled: true}, Persistence: &slinkyv1beta1.ControllerPersistence{ExistingClaim: "c"},
		}},
		&slinkyv1beta1.Accounting{Spec: slinkyv1beta1.AccountingSpec{EmbeddedDatabase: &slinkyv1beta1.EmbeddedDatabase{}}},
		&slinkyv1beta1.RestApi{},
		&slinkyv1beta1.LoginSet{Spec: slinkyv1beta1.LoginSetSpec{Users: []slinkyv1beta1.User{{Name: "u", UID: 1000}}}},
		&slinkyv1beta1.NodeSet{},
		&slinkyv1beta1.Token{},
	)
	if diff := cmp.Diff(fromSchema, fromMethods); diff != "" {
		t.Errorf("defaults (-schema +methods):\n%s", diff)
	}
}

func TestStateClaim(t *testing.T) {
	off := false
	class := "fast"
	for _, tt := range []struct {
		name        string
		persistence *slinkyv1beta1.ControllerPersistence
		want        *corev1.PersistentVolumeClaimSpec
	}{
		{name: "by default it has 4Gi", want: claim("4Gi", nil)},
		{name: "no claim without persistence", persistence: &slinkyv1beta1.ControllerPersistence{Enabled: &off}},
		{name: "no claim beside an existing one", persistence: &slinkyv1beta1.ControllerPersistence{ExistingClaim: "mine"}},
		{
			name: "what is written stays",
			persistence: &slinkyv1beta1.ControllerPersistence{PersistentVolumeClaimSpec: corev1.PersistentVolumeClaimSpec{
				StorageClassName: &class,
				Resources: corev1.VolumeResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("9Gi")},
				},
			}},
			want: claim("9Gi", &class),
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			controller := &slinkyv1beta1.Controller{Spec: slinkyv1beta1.ControllerSpec{Persistence: tt.persistence}}
			before := controller.DeepCopy()
			if diff := cmp.Diff(tt.want, controller.StateClaim()); diff != "" {
				t.Errorf("claim (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, controller); diff != "" {
				t.Errorf("asking for the claim changed the Controller:\n%s", diff)
			}
		})
	}
}

func claim(size string, class *string) *corev1.PersistentVolumeClaimSpec {
	return &corev1.PersistentVolumeClaimSpec{
		AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		StorageClassName: class,
		Resources: corev1.VolumeResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)},
		},
	}
}

func TestWhatIsWrittenWinsOverDefaults(t *testing.T) {
	off, gid, three := false, int64(5), int32(3)
	user := slinkyv1beta1.User{Name: "a", UID: 1000, GID: &gid, Home: "/h", Shell: "/bin/zsh"}
	token := &slinkyv1beta1.Token{Spec: slinkyv1beta1.TokenSpec{Refresh: &off, Lifetime: &metav1.Duration{Duration: time.Hour}}}
	external := &slinkyv1beta1.Controller{Spec: slinkyv1beta1.ControllerSpec{External: true}}
	backups := &slinkyv1beta1.Controller{Spec: slinkyv1beta1.ControllerSpec{HA: &slinkyv1beta1.ControllerHA{Enabled: true, Backups: &three}}}
	nodes := &slinkyv1beta1.NodeSet{Spec: slinkyv1beta1.NodeSetSpec{WorkloadDisruptionProtection: &off, Replicas: &three}}
	got := []any{
		user.PrimaryGID(), user.HomeDirectory(), user.LoginShell(), token.Refreshes(), token.Lifetime(),
		external.Replicas(), backups.Replicas(), nodes.DisruptionProtection(), nodes.Replicas(),
	}
	want := []any{int64(5), "/h", "/bin/zsh", false, time.Hour, int32(0), int32(4), false, int32(3)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
}
