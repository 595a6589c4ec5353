// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Memory reads objects as if they were in a cluster.
type Memory struct {
	scheme  *runtime.Scheme
	objects []client.Object
}

// NewMemory remembers objects of the kinds of a scheme.
func NewMemory(scheme *runtime.Scheme, objects []client.Object) *Memory {
	return &Memory{scheme: scheme, objects: objects}
}

// Get finds an object by its type and name.
func (m *Memory) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	for _, o := range m.objects {
		if reflect.TypeOf(o) == reflect.TypeOf(into) && client.ObjectKeyFromObject(o) == key {
			reflect.ValueOf(into).Elem().Set(reflect.ValueOf(o.DeepCopyObject()).Elem())
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{Resource: fmt.Sprintf("%T", into)}, key.Name)
}

// List finds objects by the type of the list, namespace and labels.
func (m *Memory) List(_ context.Context, into client.ObjectList, options ...client.ListOption) error {
	selects := (&client.ListOptions{}).ApplyOptions(options)
	lists, _, err := m.scheme.ObjectKinds(into)
	if err != nil {
		return fmt.Errorf("finding the kind of %T: %w", into, err)
	}
	var found []runtime.Object
	for _, o := range m.objects {
		kinds, _, err := m.scheme.ObjectKinds(o)
		if err != nil {
			return fmt.Errorf("finding the kind of %T: %w", o, err)
		}
		same := kinds[0].GroupVersion() == lists[0].GroupVersion() && kinds[0].Kind == strings.TrimSuffix(lists[0].Kind, "List")
		if same && (selects.Namespace == "" || selects.Namespace == o.GetNamespace()) &&
			(selects.LabelSelector == nil || selects.LabelSelector.Matches(labels.Set(o.GetLabels()))) {
			found = append(found, o.DeepCopyObject())
		}
	}
	return meta.SetList(into, found)
}
