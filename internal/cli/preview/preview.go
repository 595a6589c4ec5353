// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package preview computes which objects the operator would make of others, without a cluster. It asks the pure code that the controllers
// ask: internal/compose for the components of a SlurmCluster, and internal/render for the objects of a component.
//
// What the operator learns from a cluster is not known here. Digests of keys are Unknown, and of the workers of a
// NodeSet there is one.
package preview

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/cli/lint"
	"github.com/coxswain-hpc/coxswain/internal/render"
	"github.com/coxswain-hpc/coxswain/internal/render/image"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmctld"
)

// Unknown stands for what the operator reads in a cluster, such as the digest of a key.
const Unknown = "unknown"

// Hidden stands for every value in a Secret.
const Hidden = "***"

// Input is what to make objects of.
type Input struct {
	// Objects are the objects of both API groups with their defaults, and the ConfigMaps that they refer to.
	Objects []client.Object
	// Registry and Tag are the registry and tag of the images where an object names none.
	Registry, Tag string
	// ClusterDomain is the DNS domain of the Kubernetes cluster.
	ClusterDomain string
}

// Made is an object that the operator would make.
type Made struct {
	// Of is what it is made of, as KIND/NAME.
	Of string
	// Object has neither a status nor an owner. The values in a Secret are Hidden.
	Object *unstructured.Unstructured
}

// Output is what becomes of the objects of an Input.
type Output struct {
	// Made are in the order in which the operator applies them.
	Made []Made
	// Mistakes are why nothing is made of an object, and Notes are what else a reader should know. Both begin with KIND/NAME.
	Mistakes, Notes []string
	// Waits are edits that wait for jobs, where the ConfigMap of a Controller is among the objects.
	Waits []Waits
}

// Waits is an edit that waits for jobs.
type Waits struct {
	// Namespace and Controller name the Controller.
	Namespace, Controller string
	slurmctld.EditWaits
}

// maker makes objects.
type maker struct {
	Input
	images      image.Set
	scheme      *runtime.Scheme
	definitions *lint.Definitions
	// live has the objects, those of SlurmClusters included.
	live *lint.Memory
	// connections are the texts of slurm.conf by Controller.
	connections map[client.ObjectKey]string
	out         Output
	// seen are the objects that have been made: workers of several NodeSets share some.
	seen map[string]bool
}

// Make returns what the operator would make of objects. The error is what could not be checked.
func Make(ctx context.Context, in Input) (Output, error) {
	scheme, err := lint.NewScheme()
	if err == nil {
		err = clientgoscheme.AddToScheme(scheme)
	}
	if err != nil {
		return Output{}, fmt.Errorf("making a scheme: %w", err)
	}
	m := &maker{Input: in, images: image.Set{Registry: in.Registry, Tag: in.Tag}, scheme: scheme, connections: map[client.ObjectKey]string{}, seen: map[string]bool{}}
	if m.definitions, err = lint.NewDefinitions(); err != nil {
		return Output{}, err
	}
	m.Objects = nil
	for _, o := range in.Objects {
		if copied, ok := o.DeepCopyObject().(client.Object); ok {
			m.Objects = append(m.Objects, copied)
		}
	}
	m.live = lint.NewMemory(scheme, m.Objects)
	// What is composed is rendered after all is composed, and slurm.conf is known before slurmrestd is rendered.
	for _, step := range []func(context.Context, client.Object) error{m.compose, m.controller, m.component} {
		for _, o := range slices.Clone(m.Objects) {
			if empty, ok := o.(interface{ DropEmpty() }); ok {
				empty.DropEmpty()
			}
			if err := step(ctx, o); err != nil {
				return Output{}, fmt.Errorf("looking at %s: %w", m.nameOf(o), err)
			}
		}
	}
	return m.out, nil
}

// compose makes the components of a SlurmCluster, and the objects of what else the group has.
func (m *maker) compose(ctx context.Context, o client.Object) error {
	switch o := o.(type) {
	case *nebiusv1.SlurmCluster:
		return m.slurmCluster(ctx, o)
	case *nebiusv1alpha1.NodeConfigurator:
		return m.nodeConfigurator(o)
	case *nebiusv1alpha1.ActiveCheck, *nebiusv1alpha1.JailedConfig, *nebiusv1alpha1.NodeSetPowerState:
		m.note(o, "what the operator makes from it depends on the cluster and is not shown")
	}
	return nil
}

// controller makes the objects of a Controller.
func (m *maker) controller(ctx context.Context, o client.Object) error {
	if c, ok := o.(*slinkyv1beta1.Controller); ok {
		return m.slurmctld(ctx, c)
	}
	return nil
}

// component makes the objects of another component.
func (m *maker) component(ctx context.Context, o client.Object) error {
	switch o := o.(type) {
	case *slinkyv1beta1.Accounting:
		return m.slurmdbd(o)
	case *slinkyv1beta1.RestApi:
		return m.slurmrestd(ctx, o)
	case *slinkyv1beta1.LoginSet:
		return m.login(ctx, o)
	case *slinkyv1beta1.NodeSet:
		return m.workers(ctx, o)
	case *slinkyv1beta1.Token:
		return m.token(o)
	}
	return nil
}

// nameOf returns an object as KIND/NAME.
func (m *maker) nameOf(o client.Object) string {
	kind, err := apiutil.GVKForObject(o, m.scheme)
	if err != nil {
		return reflect.TypeOf(o).Elem().Name() + "/" + o.GetName()
	}
	return kind.Kind + "/" + o.GetName()
}

func (m *maker) note(o client.Object, format string, args ...any) {
	m.out.Notes = append(m.out.Notes, m.nameOf(o)+": "+fmt.Sprintf(format, args...))
}

// take adds what is rendered of an object. Of one with mistakes the operator applies nothing.
func (m *maker) take(of client.Object, out render.Output) error {
	mistakes := false
	for _, p := range out.Problems.Sorted() {
		if p.Waiting {
			m.note(of, "%s", p.Error())
			continue
		}
		mistakes = true
		m.out.Mistakes = append(m.out.Mistakes, m.nameOf(of)+": "+p.Error())
	}
	for _, path := range out.Ignored {
		m.note(of, "%s has no effect in this version", path)
	}
	if mistakes {
		return nil
	}
	for _, secret := range out.Secrets {
		if err := m.add(of, generated(of.GetNamespace(), secret)); err != nil {
			return err
		}
	}
	for _, o := range out.Objects {
		if err := m.add(of, o); err != nil {
			return err
		}
	}
	return nil
}

// add adds an object that is made of another one.
func (m *maker) add(of client.Object, made render.Object) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(made)
	if err != nil {
		return fmt.Errorf("converting %T %s: %w", made, made.GetName(), err)
	}
	u := &unstructured.Unstructured{Object: content}
	if u.GetKind() == "" {
		kind, err := apiutil.GVKForObject(made, m.scheme)
		if err != nil {
			return fmt.Errorf("finding the kind of %T: %w", made, err)
		}
		u.SetGroupVersionKind(kind)
	}
	unstructured.RemoveNestedField(u.Object, "status")
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	Hide(u)
	id := fmt.Sprintf("%s %s/%s", u.GroupVersionKind().GroupKind(), u.GetNamespace(), u.GetName())
	if m.seen[id] {
		return nil
	}
	m.seen[id] = true
	m.out.Made = append(m.out.Made, Made{Of: m.nameOf(of), Object: u})
	return nil
}

// Hide hides the values of a Secret, in place. Of another object nothing is changed.
func Hide(u *unstructured.Unstructured) {
	if u.GetAPIVersion() != "v1" || u.GetKind() != "Secret" {
		return
	}
	for _, field := range []string{"data", "stringData"} {
		values, ok := u.Object[field].(map[string]any)
		for key := range values {
			values[key] = Hidden
		}
		if !ok && u.Object[field] != nil {
			u.Object[field] = Hidden
		}
	}
}

// replace replaces the object of that kind and name by a composed one, with the defaults that the API server fills in.
func (m *maker) replace(o client.Object) error {
	kind, err := apiutil.GVKForObject(o, m.scheme)
	if err != nil {
		return fmt.Errorf("finding the kind of %T: %w", o, err)
	}
	if !m.scheme.Recognizes(kind) {
		return nil // of another operator, as a PodMonitor or a MariaDB: nothing of ours is made of it
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return fmt.Errorf("converting %s: %w", m.nameOf(o), err)
	}
	if err := m.definitions.Default(kind, content); err != nil {
		return err
	}
	typed, err := m.scheme.New(kind)
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(content, typed)
	}
	read, ok := typed.(client.Object)
	if err != nil || !ok {
		return fmt.Errorf("reading %s: %w", m.nameOf(o), cmp.Or(err, fmt.Errorf("%T is no object", typed)))
	}
	m.Objects = slices.DeleteFunc(m.Objects, func(other client.Object) bool {
		return reflect.TypeOf(other) == reflect.TypeOf(read) && client.ObjectKeyFromObject(other) == client.ObjectKeyFromObject(read)
	})
	m.Objects = append(m.Objects, read)
	m.live = lint.NewMemory(m.scheme, m.Objects)
	return nil
}
