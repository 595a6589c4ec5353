// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lint checks manifests of both API groups without a cluster: by schema and rules of the CRDs, as the API server does, and by
// internal/webhook/validation, as the webhook does.
//
// All files are looked at together, so that a NodeSet finds its SlurmCluster in another file.
package lint

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/slurm/conf"
	"github.com/coxswain-hpc/coxswain/internal/webhook/validation"
)

// NewestRelease is the newest release of Slurm whose keys are known.
const NewestRelease = conf.NewestRelease

// Source is a file with manifests.
type Source struct {
	// Name is how problems name it.
	Name string
	// Content is YAML with any number of documents, or JSON.
	Content []byte
}

// Problem is what is wrong with an object of a file.
type Problem struct {
	File string `json:"file"`
	// Kind and Name are the kind and name of the object; empty when the file cannot be read.
	Kind string `json:"kind,omitempty"`
	Name string `json:"name,omitempty"`
	// Field is the path of the field; empty where the message has it, or where it is about the whole object.
	Field string `json:"field,omitempty"`
	// Message is what is wrong.
	Message string `json:"message"`
	// Warning is true if it may be right, such as a reference to something that no file has.
	Warning bool `json:"warning,omitempty"`
}

// String returns the problem as FILE: KIND/NAME: FIELD: MESSAGE.
func (p Problem) String() string {
	parts := []string{p.File}
	if p.Kind != "" {
		parts = append(parts, p.Kind+"/"+p.Name)
	}
	if p.Warning {
		parts = append(parts, "warning")
	}
	if p.Field != "" {
		parts = append(parts, p.Field)
	}
	return strings.Join(append(parts, p.Message), ": ")
}

// linter is one look at all files.
type linter struct {
	scheme      *runtime.Scheme
	definitions *Definitions
	memory      *Memory
	// of are the places of objects to look at, in the order of the files.
	of       []placed
	problems []Problem
}

// placed is an object of ours that its definition has nothing against.
type placed struct {
	place  Problem
	object client.Object
}

// Check finds the problems of all objects of both API groups, in the order of the files. Objects without a namespace are in the one given,
// and Slurm is of the given release. The error is what could not be checked.
func Check(ctx context.Context, namespace, release string, sources []Source) ([]Problem, error) {
	l, err := read(ctx, namespace, sources)
	if err != nil {
		return nil, err
	}
	for _, p := range l.of {
		if err := l.find(ctx, p, release); err != nil {
			return nil, err
		}
	}
	order := map[string]int{}
	for i, source := range sources {
		order[source.Name] = i
	}
	slices.SortStableFunc(l.problems, func(a, b Problem) int { return order[a.File] - order[b.File] })
	return l.problems, nil
}

// Read reads the objects of both API groups with their defaults, and those of group core that ours refer to. The problems are those of
// objects that cannot be read, or that their definitions refuse; they are not among the objects.
func Read(ctx context.Context, namespace string, sources []Source) ([]client.Object, []Problem, error) {
	l, err := read(ctx, namespace, sources)
	if err != nil {
		return nil, nil, err
	}
	return l.memory.objects, l.problems, nil
}

// read reads all files.
func read(ctx context.Context, namespace string, sources []Source) (*linter, error) {
	scheme, err := NewScheme()
	if err != nil {
		return nil, err
	}
	l := &linter{scheme: scheme, memory: NewMemory(scheme, nil)}
	if l.definitions, err = NewDefinitions(); err != nil {
		return nil, err
	}
	for _, source := range sources {
		if err := l.source(ctx, namespace, source); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// NewScheme has the kinds of both API groups and those of group core.
func NewScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	err := errors.Join(corev1.AddToScheme(scheme), nebiusv1.AddToScheme(scheme), nebiusv1alpha1.AddToScheme(scheme), slinkyv1beta1.AddToScheme(scheme))
	if err != nil {
		return nil, fmt.Errorf("making a scheme: %w", err)
	}
	return scheme, nil
}

// source reads the documents of a file.
func (l *linter) source(ctx context.Context, namespace string, s Source) error {
	objects, unreadable := Documents(s)
	for _, u := range objects {
		if err := l.document(ctx, namespace, s.Name, u); err != nil {
			return err
		}
	}
	if unreadable != nil {
		return l.refuse(Problem{File: s.Name}, unreadable)
	}
	return nil
}

// Documents returns the objects of a file as they stand there, and those of its lists one by one. The error is why the rest of the file
// cannot be read.
func Documents(s Source) ([]*unstructured.Unstructured, error) {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(s.Content)))
	var out []*unstructured.Unstructured
	for {
		text, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		object := map[string]any{}
		if err == nil {
			object, err = parse(text)
		}
		if err != nil {
			return out, err
		}
		out = append(out, flatten(object)...)
	}
}

// flatten returns an object, or the objects of a list.
func flatten(object map[string]any) []*unstructured.Unstructured {
	if len(object) == 0 {
		return nil
	}
	u := &unstructured.Unstructured{Object: object}
	items, ok := object["items"].([]any)
	if !ok || !strings.HasSuffix(u.GetKind(), "List") {
		return []*unstructured.Unstructured{u}
	}
	var out []*unstructured.Unstructured
	for _, item := range items {
		if inner, ok := item.(map[string]any); ok {
			out = append(out, flatten(inner)...)
		}
	}
	return out
}

// parse reads a document as the API server reads an object: whole numbers are int64, and no key is there twice.
func parse(text []byte) (map[string]any, error) {
	raw, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return nil, fmt.Errorf("reading YAML: %w", err)
	}
	var object map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &object); err != nil {
		return nil, fmt.Errorf("reading an object: %w", err)
	}
	return object, nil
}

// document adds an object.
func (l *linter) document(ctx context.Context, namespace, file string, u *unstructured.Unstructured) error {
	object := u.Object
	if _, ok := object["metadata"].(map[string]any); !ok {
		object["metadata"] = map[string]any{}
	}
	if u.GetNamespace() == "" {
		u.SetNamespace(namespace)
	}
	kind := u.GroupVersionKind()
	place := Problem{File: file, Kind: kind.Kind, Name: u.GetName()}
	if !l.definitions.group(kind.Group) {
		l.remember(u)
		return nil
	}
	found, err := l.define(ctx, place, u)
	if err != nil || !found {
		return err
	}
	typed, err := l.scheme.New(kind)
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(object, typed)
	}
	if err != nil {
		return l.refuse(place, err)
	}
	if o, ok := typed.(client.Object); ok {
		l.memory.objects = append(l.memory.objects, o)
		l.of = append(l.of, placed{place: place, object: o})
	}
	return nil
}

// refuse records what cannot be read. The others go on.
func (l *linter) refuse(place Problem, why error) error {
	place.Message = why.Error()
	l.problems = append(l.problems, place)
	return nil
}

// define checks an object by its definition, and reports whether nothing is wrong with it.
func (l *linter) define(ctx context.Context, place Problem, u *unstructured.Unstructured) (bool, error) {
	before := len(l.problems)
	add := func(field, message string) {
		place.Field, place.Message = field, message
		l.problems = append(l.problems, place)
	}
	d, err := l.definitions.of(u.GroupVersionKind())
	if err != nil {
		return false, err
	}
	if d == nil {
		add("", fmt.Sprintf("there is no kind %s in %s", u.GetKind(), u.GetAPIVersion()))
		return false, nil
	}
	if u.GetName() == "" && u.GetGenerateName() == "" {
		add("metadata.name", "a name is required")
	}
	for _, path := range d.Default(u.Object) {
		add(path, "unknown field")
	}
	for _, e := range d.Validate(ctx, u.Object, nil) {
		add(e.Field, e.ErrorBody())
	}
	return len(l.problems) == before, nil
}

// remember keeps an object of Kubernetes, such as a ConfigMap, for those that refer to it. Nothing is reported about others.
func (l *linter) remember(u *unstructured.Unstructured) {
	typed, err := l.scheme.New(u.GroupVersionKind())
	if err != nil {
		return
	}
	o, ok := typed.(client.Object)
	if ok && runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, typed) == nil {
		l.memory.objects = append(l.memory.objects, o)
	}
}

// find asks what the webhook asks.
func (l *linter) find(ctx context.Context, p placed, release string) error {
	found, err := validation.Find(ctx, l.memory, p.object, release)
	if err != nil {
		return fmt.Errorf("looking at %s %s: %w", p.place.Kind, p.place.Name, err)
	}
	for _, mistake := range found.Mistakes.Sorted() {
		problem := p.place
		problem.Field, problem.Message = mistake.Path, mistake.Message
		l.problems = append(l.problems, problem)
	}
	for _, warning := range found.Warnings {
		problem := p.place
		problem.Message, problem.Warning = warning, true
		l.problems = append(l.problems, problem)
	}
	return nil
}
