// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubesim is a Kubernetes API server in memory, for tests whose time is synthetic (testing/synctest) and that
// have to start an operator thousands of times.
//
// It speaks HTTP through a transport, without a network, so that the manager under test is the real one: its informers
// list and watch, its clients patch. It has resource versions, generations, UIDs, server-side apply with field managers
// (by Kubernetes' own library), merge and strategic merge patches, status subresources, preconditions, graceful deletion
// and eviction of pods, and finalizers. It has no admission, no validation, no defaults, no garbage collector and no controllers. What
// it answers is compared with what kube-apiserver answers in this package's tests; what hangs on more than that belongs
// to tests with internal/testing/apiserver.
//
// Unlike the real one it can hold its watches back, repeat them, or let them expire.
package kubesim

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// Server is an API server. It is safe for concurrent use; it has no goroutines but those of open watches.
type Server struct {
	// Now is its clock. It may be replaced before anybody uses the server.
	Now       func() time.Time
	mu        sync.Mutex
	resources map[schema.GroupVersionResource]*resource
	ordered   []*resource // by name
	version   int64
	uids      int
	changed   chan struct{} // closed and replaced when a watch may have something to send
}

// resource is one kind with its objects and what happened to them.
type resource struct {
	gvk        schema.GroupVersionKind
	gvr        schema.GroupVersionResource
	namespaced bool
	managers   fieldManagers
	objects    map[key]*unstructured.Unstructured
	log        []event
	held       bool
	// Watches opened before the last expiry end with an error, those before the last disconnection without a word.
	expired, disconnected int
}

type key struct{ namespace, name string }

// event is a change of one object: before is nil for a new one, after for one that is gone.
type event struct {
	version       int64
	before, after *unstructured.Unstructured
}

// clusterScoped are the kinds that do not belong to a namespace.
func clusterScoped(kind string) bool {
	return slices.Contains([]string{"Namespace", "Node", "PersistentVolume", "PriorityClass", "StorageClass", "ClusterRole", "CustomResourceDefinition"}, kind)
}

// New returns an empty server for the kinds of a scheme.
func New(scheme *runtime.Scheme) *Server {
	s := &Server{Now: time.Now, resources: map[schema.GroupVersionResource]*resource{}, version: 1, changed: make(chan struct{})}
	converter := newConverter(scheme)
	for gvk := range scheme.AllKnownTypes() {
		if gvk.Version == runtime.APIVersionInternal || !isObject(scheme, gvk) {
			continue
		}
		gvr, _ := meta.UnsafeGuessKindToResource(gvk)
		s.resources[gvr] = &resource{
			gvk: gvk, gvr: gvr, namespaced: !clusterScoped(gvk.Kind),
			managers: fieldManagers{converter: converter, gvk: gvk}, objects: map[key]*unstructured.Unstructured{},
		}
	}
	s.ordered = slices.SortedFunc(maps.Values(s.resources), func(a, b *resource) int { return strings.Compare(a.gvr.String(), b.gvr.String()) })
	return s
}

// isObject reports whether a type of the scheme is stored, and not a list or the options of a call.
func isObject(scheme *runtime.Scheme, gvk schema.GroupVersionKind) bool {
	obj, err := scheme.New(gvk)
	if err != nil || strings.HasSuffix(gvk.Kind, "List") || strings.HasSuffix(gvk.Kind, "Options") {
		return false
	}
	_, err = meta.Accessor(obj)
	return err == nil
}

// Config lets clients talk to the server. wrap, which may be nil, sees every request before it does.
func (s *Server) Config(wrap func(http.RoundTripper) http.RoundTripper) *rest.Config {
	config := &rest.Config{Host: "http://kubesim", Transport: s, QPS: -1}
	config.ContentType = runtime.ContentTypeJSON
	if wrap != nil {
		config.Transport = wrap(s)
	}
	return config
}

// Mapper maps the kinds of the server without asking it.
func (s *Server) Mapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, r := range s.resources {
		scope := meta.RESTScopeNamespace
		if !r.namespaced {
			scope = meta.RESTScopeRoot
		}
		mapper.Add(r.gvk, scope)
		mapper.Add(r.gvk.GroupVersion().WithKind(r.gvk.Kind+"List"), scope)
	}
	return mapper
}

// Objects returns all objects of a kind, by namespace and name. They are not to be changed.
func (s *Server) Objects(gvk schema.GroupVersionKind) []*unstructured.Unstructured {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.of(gvk); r != nil {
		return r.sorted()
	}
	return nil
}

// of returns the resource of a kind, or nil.
func (s *Server) of(gvk schema.GroupVersionKind) *resource {
	gvr, _ := meta.UnsafeGuessKindToResource(gvk)
	return s.resources[gvr]
}

// All returns all objects of all kinds. They are not to be changed.
func (s *Server) All() []*unstructured.Unstructured {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*unstructured.Unstructured
	for _, r := range s.ordered {
		out = append(out, r.sorted()...)
	}
	return out
}

// Edit changes an object in the server itself, spec and status alike, as field manager "surroundings": what kubelets and
// the controllers of Kubernetes do. An edit that changes nothing is none, nor is one of an object that does not exist.
func (s *Server) Edit(gvk schema.GroupVersionKind, namespace, name string, edit func(obj *unstructured.Unstructured)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.of(gvk)
	live := r.objects[key{namespace, name}]
	if live == nil {
		return nil
	}
	obj := live.DeepCopy()
	edit(obj)
	if equality.Semantic.DeepEqual(live.Object, obj.Object) {
		return nil
	}
	manager, err := r.managers.of("")
	if err != nil {
		return err
	}
	owned, err := manager.Update(live, obj, "surroundings")
	if err != nil {
		return fmt.Errorf("noting the owners of the fields of %s %s: %w", gvk.Kind, name, err)
	}
	if obj, err = asUnstructured(owned); err == nil {
		s.store(r, live, obj)
		s.finish(r, obj)
	}
	return err
}

// finish removes an object that is being deleted and that no finalizer keeps; a pod is removed by its kubelet. The caller
// holds the lock.
func (s *Server) finish(r *resource, obj *unstructured.Unstructured) {
	if obj.GetDeletionTimestamp() != nil && len(obj.GetFinalizers()) == 0 && obj.GetKind() != "Pod" {
		s.store(r, obj, nil)
	}
}

// TouchAnnotation is what Touch changes.
const TouchAnnotation = "kubesim/touched"

// Touch changes an annotation of an object that is not read by anything, so that the object has another version. It reports whether
// there is such an object.
func (s *Server) Touch(plural, namespace, name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.ordered {
		live := r.objects[key{namespace, name}]
		if r.gvr.Resource != plural || live == nil {
			continue
		}
		obj := live.DeepCopy()
		annotations := obj.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[TouchAnnotation] = fmt.Sprint(s.version)
		obj.SetAnnotations(annotations)
		s.store(r, live, obj)
		return true
	}
	return false
}

// Put stores an object as it is, new or in place of another; a new one without UID is given what new ones have.
func (s *Server) Put(obj *unstructured.Unstructured) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.of(obj.GroupVersionKind())
	obj = obj.DeepCopy()
	live := r.objects[keyOf(obj)]
	if live == nil && obj.GetUID() == "" {
		s.identify(obj)
	}
	s.store(r, live, obj)
}

// Remove takes an object out of the server, whatever its finalizers and its kubelet.
func (s *Server) Remove(gvk schema.GroupVersionKind, namespace, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.of(gvk)
	if live := r.objects[key{namespace, name}]; live != nil {
		s.store(r, live, nil)
	}
}

// A Dump is the content of a server.
type Dump struct {
	version int64
	uids    int
	objects []*unstructured.Unstructured
}

// Dump returns the server's content, from which Restore makes another server's.
func (s *Server) Dump() Dump {
	all := s.All()
	s.mu.Lock()
	defer s.mu.Unlock()
	return Dump{version: s.version, uids: s.uids, objects: all}
}

// dumped is a Dump in JSON.
type dumped struct {
	Version int64                        `json:"version"`
	UIDs    int                          `json:"uids"`
	Objects []*unstructured.Unstructured `json:"objects"`
}

// MarshalJSON is part of json.Marshaler.
func (d Dump) MarshalJSON() ([]byte, error) {
	return json.Marshal(dumped{d.version, d.uids, d.objects})
}

// UnmarshalJSON is part of json.Unmarshaler.
func (d *Dump) UnmarshalJSON(text []byte) error {
	var read dumped
	if err := json.Unmarshal(text, &read); err != nil {
		return fmt.Errorf("reading a dump: %w", err)
	}
	*d = Dump{read.Version, read.UIDs, read.Objects}
	return nil
}

// Restore fills an empty server with what another one had, resource versions included.
func (s *Server) Restore(d Dump) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version, s.uids = d.version, d.uids
	for _, obj := range d.objects {
		s.of(obj.GroupVersionKind()).objects[keyOf(obj)] = obj // objects in a server are never changed, only replaced
	}
}

// Version returns the resource version of the last change.
func (s *Server) Version() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// Hold keeps the events of these resources ("pods") back from open watches, or of all without names. Writes and reads are
// not held.
func (s *Server) Hold(plurals ...string) { s.each(plurals, func(r *resource) { r.held = true }) }

// Release lets go what was held of these resources, or of all without names.
func (s *Server) Release(plurals ...string) { s.each(plurals, func(r *resource) { r.held = false }) }

// Disconnect ends all watches, as an API server does that is stopped. Clients watch again from where they were.
func (s *Server) Disconnect() {
	s.each(nil, func(r *resource) { r.disconnected++ })
}

// Expire ends the watches of these resources, or of all without names, as an API server does whose history is too short.
// Clients list anew, and never learn of what was there in between; what was held is released.
func (s *Server) Expire(plurals ...string) {
	s.each(plurals, func(r *resource) {
		r.held = false
		r.expired++
	})
}

// Repeat sends the objects of these resources, or of all without names, to every watch once more, as they are.
func (s *Server) Repeat(plurals ...string) {
	s.each(plurals, func(r *resource) {
		for _, obj := range r.sorted() {
			r.log = append(r.log, event{version: s.version, before: obj, after: obj})
		}
	})
}

func (s *Server) each(plurals []string, do func(*resource)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.ordered {
		if len(plurals) == 0 || slices.Contains(plurals, r.gvr.Resource) {
			do(r)
		}
	}
	s.tell()
}

func (r *resource) sorted() []*unstructured.Unstructured {
	if len(r.objects) == 0 {
		return nil
	}
	return slices.SortedFunc(maps.Values(r.objects), func(a, b *unstructured.Unstructured) int {
		return cmp.Or(strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetName(), b.GetName()))
	})
}

// tell wakes all watches; the caller holds the lock.
func (s *Server) tell() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// store keeps obj, or nothing, in place of before, with a new resource version; the caller holds the lock.
func (s *Server) store(r *resource, before, obj *unstructured.Unstructured) {
	s.version++
	e := event{version: s.version, before: before, after: obj}
	if obj != nil {
		obj.SetResourceVersion(fmt.Sprint(s.version))
		r.objects[keyOf(obj)] = obj
	} else {
		delete(r.objects, keyOf(before))
	}
	r.log = append(r.log, e)
	s.tell()
}

func keyOf(obj *unstructured.Unstructured) key { return key{obj.GetNamespace(), obj.GetName()} }

// identify fills in what the server gives a new object; the caller holds the lock.
func (s *Server) identify(obj *unstructured.Unstructured) {
	s.uids++
	if obj.GetName() == "" {
		obj.SetName(fmt.Sprintf("%s%05d", obj.GetGenerateName(), s.uids))
	}
	obj.SetUID(uid(s.uids))
	obj.SetCreationTimestamp(metav1.NewTime(s.Now()))
	if _, hasSpec := obj.Object["spec"]; hasSpec {
		obj.SetGeneration(1)
	}
	if obj.GetKind() == "Pod" {
		obj.Object["status"] = map[string]any{"phase": "Pending"}
	}
}
