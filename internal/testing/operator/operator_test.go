// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

// late is a client of an API server whose objects are not there yet the first times that they are asked for.
type late struct {
	client.Client
	absent int
}

// Get is part of client.Client.
func (l *late) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	if l.absent--; l.absent >= 0 {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, key.Name)
	}
	obj.SetName(key.Name)
	return nil
}

func TestAnObjectThatIsNotThereYetIsNeverNil(t *testing.T) {
	o := &Operator{Server: &apiserver.Server{Namespace: "ns"}, User: &late{absent: 3}, t: t}
	found, err := Find[corev1.ConfigMap](o, "users")
	if found == nil || found.Data["passwd"] != "" || !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), "reading *v1.ConfigMap users: ") {
		t.Errorf("Find returns %v, %v", found, err)
	}
	if Exists[corev1.ConfigMap](o, "users") {
		t.Error("it exists before it is there")
	}
	if got := Get[corev1.ConfigMap](o, "users"); got.Name != "users" {
		t.Errorf("Get does not wait for it: %v", got)
	}
	if found, err = Find[corev1.ConfigMap](o, "users"); err != nil || found.Name != "users" || !Exists[corev1.ConfigMap](o, "users") {
		t.Errorf("Find returns %v, %v when it is there", found, err)
	}
}

// gone is a client of an API server that lists a worker pod, and has none when its status is written.
type gone struct{ client.Client }

// List is part of client.Client.
func (gone) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.(*corev1.PodList).Items = []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "w-0"}, Spec: corev1.PodSpec{Hostname: "w-0"}}}
	return nil
}

// Status is part of client.Client.
func (gone) Status() client.SubResourceWriter { return goneStatus{} }

// goneStatus writes the status of what is gone.
type goneStatus struct{ client.SubResourceWriter }

// Patch is part of client.SubResourceWriter.
func (goneStatus) Patch(_ context.Context, obj client.Object, _ client.Patch, _ ...client.SubResourcePatchOption) error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, obj.GetName())
}

func TestAWorkerThatGoesWhileOthersStartRunsNothing(t *testing.T) {
	o := &Operator{Server: &apiserver.Server{Namespace: "ns"}, User: &gone{}, Slurm: fake.New(fake.Options{}), t: t}
	o.RunWorkers()
	if names := o.Slurm.Names(); len(names) > 0 {
		t.Errorf("%v have registered", names)
	}
}

// loginSets is a client of an API server that has these.
type loginSets struct {
	client.Client
	items []slinkyv1beta1.LoginSet
}

// List is part of client.Client.
func (l loginSets) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.(*slinkyv1beta1.LoginSetList).Items = l.items
	return nil
}

func TestNobodyIsAtRestWhileHostKeysAreMade(t *testing.T) {
	set := func(generation, observed int64, deleted bool) slinkyv1beta1.LoginSet {
		l := slinkyv1beta1.LoginSet{ObjectMeta: metav1.ObjectMeta{Name: "login", Generation: generation}}
		if deleted {
			l.DeletionTimestamp = new(metav1.Now())
		}
		if observed > 0 {
			l.Status.Conditions = []metav1.Condition{{Type: slinkyv1beta1.ConditionReady, ObservedGeneration: observed}}
		}
		return l
	}
	for _, test := range []struct {
		name  string
		sets  []slinkyv1beta1.LoginSet
		kinds map[string]bool
		makes bool
	}{
		{"there is no LoginSet", nil, nil, false},
		{"nothing is said of a new LoginSet", []slinkyv1beta1.LoginSet{set(1, 0, false)}, nil, true},
		{"what is said is of an earlier generation", []slinkyv1beta1.LoginSet{set(1, 1, false), set(2, 1, false)}, nil, true},
		{"all LoginSets have been answered for", []slinkyv1beta1.LoginSet{set(1, 1, false), set(2, 2, false)}, nil, false},
		{"a LoginSet goes before it was answered for", []slinkyv1beta1.LoginSet{set(1, 0, true)}, nil, false},
		{"nobody answers for LoginSets", []slinkyv1beta1.LoginSet{set(1, 0, false)}, map[string]bool{"controller": true}, false},
		{"the operator has few kinds, and these among them", []slinkyv1beta1.LoginSet{set(1, 0, false)}, map[string]bool{"loginset": true}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := &Operator{Server: &apiserver.Server{Namespace: "ns"}, User: loginSets{items: test.sets}, t: t, enabled: test.kinds}
			if got := o.makesHostKeys(); got != test.makes {
				t.Errorf("it makes host keys: %t, want %t", got, test.makes)
			}
		})
	}
}
