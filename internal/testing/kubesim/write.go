// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package kubesim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes/scheme"
)

// write carries out a changing request; the caller holds the lock. The answer is the object, or a Status.
func (s *Server) write(r *request, res *resource) (int, *unstructured.Unstructured, error) {
	live := res.objects[key{r.namespace, r.name}]
	switch {
	case r.subresource == "eviction":
		return s.evict(r, res)
	case r.method == http.MethodPost:
		return s.create(r, res)
	case r.method == http.MethodPut:
		obj, err := r.object()
		if err != nil {
			return 0, nil, err
		}
		if live == nil {
			return 0, nil, r.absent()
		}
		return s.change(r, res, live, obj)
	case r.method == http.MethodPatch:
		return s.patch(r, res, live)
	case r.method == http.MethodDelete:
		if live == nil {
			return 0, nil, r.absent()
		}
		return s.remove(r, res, live)
	}
	return 0, nil, apierrors.NewMethodNotSupported(r.gvr.GroupResource(), r.method)
}

func (r *request) object() (*unstructured.Unstructured, error) {
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON(r.body); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return obj, nil
}

func (s *Server) create(r *request, res *resource) (int, *unstructured.Unstructured, error) {
	obj, err := r.object()
	if err != nil {
		return 0, nil, err
	}
	obj.SetNamespace(r.namespace)
	if obj.GetName() != "" && res.objects[keyOf(obj)] != nil {
		return 0, nil, apierrors.NewAlreadyExists(r.gvr.GroupResource(), obj.GetName())
	}
	delete(obj.Object, "status")
	obj, err = s.owned(r, res, emptyOf(res), obj)
	if err != nil {
		return 0, nil, err
	}
	s.identify(obj)
	s.store(res, nil, obj)
	return http.StatusCreated, obj, nil
}

func emptyOf(res *resource) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(res.gvk)
	return obj
}

// owned records who owns the fields that differ.
func (s *Server) owned(r *request, res *resource, live, obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	manager, err := res.managers.of(r.subresource)
	if err != nil {
		return nil, err
	}
	who := r.query.Get("fieldManager")
	if who == "" {
		who = "unknown"
	}
	out, err := manager.Update(live, obj, who)
	if err != nil {
		return nil, fmt.Errorf("noting the owners of the fields of %s %s: %w", res.gvk.Kind, r.name, err)
	}
	return asUnstructured(out)
}

func asUnstructured(obj runtime.Object) (*unstructured.Unstructured, error) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("the field manager returned a %T", obj)
	}
	return u, nil
}

// patch works out what a patch makes of the live object, which may be nil, and stores that.
func (s *Server) patch(r *request, res *resource, live *unstructured.Unstructured) (int, *unstructured.Unstructured, error) {
	kind := types.PatchType(r.contentType)
	if kind == types.ApplyPatchType {
		return s.apply(r, res, live)
	}
	if live == nil {
		return 0, nil, r.absent()
	}
	var patch map[string]any
	if err := json.Unmarshal(r.body, &patch); err != nil {
		return 0, nil, apierrors.NewBadRequest(err.Error())
	}
	obj := live.DeepCopy()
	switch kind {
	case types.MergePatchType:
		merge(obj.Object, patch)
	case types.StrategicMergePatchType:
		typed, err := scheme.Scheme.New(res.gvk)
		if err != nil {
			return 0, nil, apierrors.NewGenericServerResponse(http.StatusUnsupportedMediaType, r.method, r.gvr.GroupResource(), r.name, "", 0, true)
		}
		if obj.Object, err = strategicpatch.StrategicMergeMapPatch(obj.Object, patch, typed); err != nil {
			return 0, nil, apierrors.NewBadRequest(err.Error())
		}
	default:
		return 0, nil, apierrors.NewBadRequest("patches of type " + r.contentType + " are not served")
	}
	// Numbers become what they are in stored objects.
	text, err := json.Marshal(obj.Object)
	if err == nil {
		err = obj.UnmarshalJSON(text)
	}
	if err != nil {
		return 0, nil, apierrors.NewBadRequest(err.Error())
	}
	if obj.GetUID() != live.GetUID() { // which a patch changes as any other field, so that it is no precondition
		return 0, nil, apierrors.NewInvalid(res.gvk.GroupKind(), r.name, field.ErrorList{field.Invalid(field.NewPath("metadata", "uid"), obj.GetUID(), "field is immutable")})
	}
	return s.change(r, res, live, obj)
}

// merge is RFC 7396.
func merge(into, patch map[string]any) {
	for name, value := range patch {
		child, isMap := value.(map[string]any)
		switch {
		case value == nil:
			delete(into, name)
		case isMap:
			existing, ok := into[name].(map[string]any)
			if !ok {
				existing = map[string]any{}
				into[name] = existing
			}
			merge(existing, child)
		default:
			into[name] = value
		}
	}
}

func (s *Server) apply(r *request, res *resource, live *unstructured.Unstructured) (int, *unstructured.Unstructured, error) {
	applied, err := r.object()
	if err != nil {
		return 0, nil, err
	}
	applied.SetNamespace(r.namespace)
	if live == nil && r.subresource != "" {
		return 0, nil, r.absent()
	}
	if live != nil && applied.GetUID() != "" && applied.GetUID() != live.GetUID() {
		return 0, nil, apierrors.NewInvalid(res.gvk.GroupKind(), r.name, field.ErrorList{field.Invalid(field.NewPath("metadata", "uid"), applied.GetUID(), "field is immutable")})
	}
	if err := r.preconditions(live, applied.GetUID(), applied.GetResourceVersion()); err != nil {
		return 0, nil, err
	}
	unstructured.RemoveNestedField(applied.Object, "metadata", "uid")
	unstructured.RemoveNestedField(applied.Object, "metadata", "resourceVersion")
	if r.subresource == "" {
		delete(applied.Object, "status")
	}
	manager, err := res.managers.of(r.subresource)
	if err != nil {
		return 0, nil, err
	}
	base := live
	if base == nil {
		base = emptyOf(res)
	}
	out, err := manager.Apply(base.DeepCopy(), applied, r.query.Get("fieldManager"), r.query.Get("force") == "true")
	if err != nil {
		return 0, nil, err
	}
	obj, err := asUnstructured(out)
	if err != nil {
		return 0, nil, err
	}
	if live == nil {
		s.identify(obj)
		s.store(res, nil, obj)
		return http.StatusCreated, obj, nil
	}
	return s.keep(r, res, live, obj)
}

// preconditions checks those that a client puts into an object or into the options of a deletion.
func (r *request) preconditions(live *unstructured.Unstructured, uid types.UID, version string) error {
	switch {
	case live == nil && (uid != "" || version != ""):
		return apierrors.NewConflict(r.gvr.GroupResource(), r.name, fmt.Errorf("uid mismatch: no existing object was found"))
	case live == nil:
		return nil
	case uid != "" && uid != live.GetUID():
		return apierrors.NewConflict(r.gvr.GroupResource(), r.name, fmt.Errorf("precondition failed: UID in precondition: %s, UID in object meta: %s", uid, live.GetUID()))
	case version != "" && version != live.GetResourceVersion():
		return apierrors.NewConflict(r.gvr.GroupResource(), r.name, fmt.Errorf("the object has been modified; please apply your changes to the latest version and try again"))
	}
	return nil
}

// change stores obj, as a client sent it, in place of live.
func (s *Server) change(r *request, res *resource, live, obj *unstructured.Unstructured) (int, *unstructured.Unstructured, error) {
	if err := r.preconditions(live, obj.GetUID(), obj.GetResourceVersion()); err != nil {
		return 0, nil, err
	}
	obj, err := s.owned(r, res, live, split(r, live, obj))
	if err != nil {
		return 0, nil, err
	}
	return s.keep(r, res, live, obj)
}

// split keeps status and the rest apart: what belongs to the other endpoint stays as it is.
func split(r *request, live, obj *unstructured.Unstructured) *unstructured.Unstructured {
	status, given := obj.Object["status"]
	if r.subresource == "" {
		status, given = live.DeepCopy().Object["status"]
	} else {
		managed, labels, annotations := obj.GetManagedFields(), obj.GetLabels(), obj.GetAnnotations()
		obj = live.DeepCopy()
		obj.SetManagedFields(managed)
		if live.GetKind() == "Pod" { // of other kinds the API server takes the status alone
			obj.SetLabels(labels)
			obj.SetAnnotations(annotations)
		}
	}
	delete(obj.Object, "status")
	if given {
		obj.Object["status"] = status
	}
	return obj
}

// keep stores the outcome of a change, unless nothing changed.
func (s *Server) keep(r *request, res *resource, live, obj *unstructured.Unstructured) (int, *unstructured.Unstructured, error) {
	obj = split(r, live, obj)
	obj.SetUID(live.GetUID())
	obj.SetResourceVersion(live.GetResourceVersion())
	obj.SetCreationTimestamp(live.GetCreationTimestamp())
	obj.SetGeneration(live.GetGeneration())
	obj.SetDeletionTimestamp(live.GetDeletionTimestamp())
	obj.SetDeletionGracePeriodSeconds(live.GetDeletionGracePeriodSeconds())
	if equality.Semantic.DeepEqual(live.Object, obj.Object) {
		return http.StatusOK, live, nil
	}
	if live.GetGeneration() > 0 && !equality.Semantic.DeepEqual(live.Object["spec"], obj.Object["spec"]) {
		obj.SetGeneration(live.GetGeneration() + 1)
	}
	s.store(res, live, obj)
	s.finish(res, obj)
	return http.StatusOK, obj, nil
}

// remove deletes an object, or marks it for deletion when a kubelet or a finalizer has to do its work first.
func (s *Server) remove(r *request, res *resource, live *unstructured.Unstructured) (int, *unstructured.Unstructured, error) {
	var options metav1.DeleteOptions
	if len(r.body) > 0 {
		if err := json.Unmarshal(r.body, &options); err != nil {
			return 0, nil, apierrors.NewBadRequest(err.Error())
		}
	}
	if p := options.Preconditions; p != nil {
		var uid types.UID
		version := ""
		if p.UID != nil {
			uid = *p.UID
		}
		if p.ResourceVersion != nil {
			version = *p.ResourceVersion
		}
		if err := r.preconditions(live, uid, version); err != nil {
			return 0, nil, err
		}
	}
	finalizers := live.GetFinalizers()
	if p := options.PropagationPolicy; p != nil && *p == metav1.DeletePropagationOrphan && !slices.Contains(finalizers, metav1.FinalizerOrphanDependents) {
		// The garbage collector takes it off when the dependents have forgotten the object.
		finalizers = append(slices.Clone(finalizers), metav1.FinalizerOrphanDependents)
	}
	node, _, _ := unstructured.NestedString(live.Object, "spec", "nodeName")
	phase, _, _ := unstructured.NestedString(live.Object, "status", "phase")
	grace := int64(30)
	if options.GracePeriodSeconds != nil {
		grace = *options.GracePeriodSeconds
	}
	stopping := live.GetKind() == "Pod" && node != "" && grace > 0 && phase != "Failed" && phase != "Succeeded"
	if !stopping && len(finalizers) == 0 {
		s.store(res, live, nil)
		return http.StatusOK, live, nil
	}
	if live.GetDeletionTimestamp() != nil {
		return http.StatusOK, live, nil
	}
	obj := live.DeepCopy()
	obj.SetFinalizers(finalizers)
	at := metav1.NewTime(s.Now().Add(time.Duration(grace) * time.Second))
	obj.SetDeletionTimestamp(&at)
	obj.SetDeletionGracePeriodSeconds(&grace)
	if live.GetGeneration() > 0 {
		obj.SetGeneration(live.GetGeneration() + 1)
	}
	s.store(res, live, obj)
	return http.StatusOK, obj, nil
}
