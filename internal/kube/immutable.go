// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"errors"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ReasonImmutable is the reason of a condition about a change that Kubernetes does not allow.
const ReasonImmutable = "ImmutableField"

// ImmutableError is a change that cannot be made to an existing object. Nothing was sent, or the server refused it.
type ImmutableError struct {
	// Object is the object that cannot be changed.
	Object Ref
	// Path is the field within that object.
	Path string
	// From and To are the values now and wanted, cut to 80 characters; empty for Secrets and for lists and maps.
	From, To string
	// WayOut is what a person can do about it.
	WayOut string
}

// Error implements error.
func (e *ImmutableError) Error() string {
	change := ""
	if e.From != "" || e.To != "" {
		change = fmt.Sprintf(" from %q to %q", e.From, e.To)
	}
	return fmt.Sprintf("%s of %s cannot be changed%s in place; %s", e.Path, e.Object, change, e.WayOut)
}

// As makes the error a problem for problem.FromError: it stays until somebody acts.
func (e *ImmutableError) As(target any) bool {
	return asProblem(target, ReasonImmutable, e.Error())
}

// ReasonRejected is the reason of a condition about an object that the API server does not accept.
const ReasonRejected = "InvalidSpec"

// RejectedError is the API server's refusal of the content of an object as invalid, as a rule because of something that a
// user wrote into a pod template, a Service or a claim. Sending it again does not help.
type RejectedError struct {
	// Object is the object that was refused.
	Object Ref
	// Err is the server's answer.
	Err error
}

// Error implements error.
func (e *RejectedError) Error() string {
	return fmt.Sprintf("the API server refuses %s; correct the cause: %v", e.Object, e.Err)
}

// Unwrap returns the server's answer.
func (e *RejectedError) Unwrap() error { return e.Err }

// As makes the error a problem for problem.FromError: it stays until somebody acts.
func (e *RejectedError) As(target any) bool {
	return asProblem(target, ReasonRejected, e.Error())
}

// immutableChange returns what in the intent the server would refuse to change in the live object, or nil. Fields
// that the server fills in itself when they are left out do not count as changes.
func immutableChange(want intent, live map[string]any) *ImmutableError {
	desired := want.object.Object
	path := ""
	switch want.gvk.GroupKind() {
	case schema.GroupKind{Group: "apps", Kind: "StatefulSet"}:
		path = statefulSetChange(desired, live)
	case schema.GroupKind{Group: "apps", Kind: "Deployment"}, schema.GroupKind{Group: "apps", Kind: "DaemonSet"}:
		path = changed(desired, live, "spec.selector")
	case schema.GroupKind{Group: "batch", Kind: "Job"}:
		path = changed(desired, live, "spec.template", "spec.completionMode", "spec.podFailurePolicy")
	case schema.GroupKind{Kind: "Service"}:
		path = serviceChange(desired, live)
	case schema.GroupKind{Kind: "Secret"}, schema.GroupKind{Kind: "ConfigMap"}:
		path = contentChange(desired, live)
	case schema.GroupKind{Kind: "PersistentVolumeClaim"}:
		path = claimChange(desired, live)
	case schema.GroupKind{Group: "policy", Kind: "PodDisruptionBudget"}:
		path = budgetChange(desired, live)
	case schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}:
		path = changed(desired, live, "roleRef.kind", "roleRef.name")
	}
	if path == "" {
		return nil
	}
	e := &ImmutableError{Object: want.ref(), Path: path, WayOut: wayOut(want.gvk.Kind)}
	if want.gvk.Kind != "Secret" {
		e.From, e.To = shown(live, path), shown(desired, path)
	}
	return e
}

func wayOut(kind string) string {
	switch kind {
	case "StatefulSet":
		return "delete it with \"kubectl delete --cascade=orphan\" (its pods keep running) and it is created again"
	case "PersistentVolumeClaim":
		return "undo the change, or save the data, delete the claim and it is created again"
	default:
		return "undo the change, or delete it and it is created again"
	}
}

// changed returns the first path at which desired has something that live lacks.
func changed(desired, live map[string]any, paths ...string) string {
	for _, path := range paths {
		want, wanted := at(desired, path)
		have, _ := at(live, path)
		if !wanted {
			continue
		}
		// Without merge keys: in an immutable part nobody else may have added anything.
		if (comparison{}).values(path, lastOf(path), want, have) != "" {
			return path
		}
	}
	return ""
}

func statefulSetChange(desired, live map[string]any) string {
	if path := changed(desired, live, "spec.selector", "spec.serviceName"); path != "" {
		return path
	}
	// Left out means the default here, not "as it is".
	policy := func(object map[string]any) string {
		s, _ := stringAt(object, "spec.podManagementPolicy")
		if s == "" {
			return "OrderedReady"
		}
		return s
	}
	if policy(desired) != policy(live) {
		return "spec.podManagementPolicy"
	}
	want, _ := at(desired, "spec.volumeClaimTemplates")
	have, _ := at(live, "spec.volumeClaimTemplates")
	wantList, _ := want.([]any)
	haveList, _ := have.([]any)
	if len(wantList) != len(haveList) {
		return "spec.volumeClaimTemplates"
	}
	for i := range wantList {
		a, b := claimTemplate(wantList[i]), claimTemplate(haveList[i])
		if (comparison{}).values("", "", a, b) != "" || (comparison{}).values("", "", b, a) != "" {
			return "spec.volumeClaimTemplates"
		}
	}
	return ""
}

// claimTemplate is a volume claim template without what the server adds, so that two can be compared both ways.
func claimTemplate(template any) map[string]any {
	source, _ := template.(map[string]any)
	out := map[string]any{}
	if metadata, ok := source["metadata"].(map[string]any); ok {
		out["metadata"] = map[string]any{"name": metadata["name"], "labels": metadata["labels"], "annotations": metadata["annotations"]}
	}
	spec := map[string]any{"volumeMode": "Filesystem"}
	if from, ok := source["spec"].(map[string]any); ok {
		maps.Copy(spec, from)
	}
	out["spec"] = spec
	return out
}

func serviceChange(desired, live map[string]any) string {
	if kind, _ := stringAt(desired, "spec.type"); kind == string(corev1.ServiceTypeExternalName) {
		return ""
	}
	want, _ := stringAt(desired, "spec.clusterIP")
	have, _ := stringAt(live, "spec.clusterIP")
	if have == "" || want == have || (want == "" && have != corev1.ClusterIPNone) {
		return ""
	}
	return "spec.clusterIP"
}

// budgetChange finds a budget that has one of two fields which exclude each other, and is to have the other. Its spec may
// be changed, but an apply takes away only what it has set itself.
func budgetChange(desired, live map[string]any) string {
	for field, other := range map[string]string{"spec.minAvailable": "spec.maxUnavailable", "spec.maxUnavailable": "spec.minAvailable"} {
		_, wanted := at(desired, field)
		_, excluded := at(live, other)
		if wanted && excluded {
			return other
		}
	}
	return ""
}

// contentChange is about ConfigMaps and Secrets: an immutable one cannot change at all, and a Secret's type never.
func contentChange(desired, live map[string]any) string {
	if path := changed(desired, live, "type"); path != "" {
		return path
	}
	if immutable, _ := live["immutable"].(bool); !immutable {
		return ""
	}
	if stays, _ := desired["immutable"].(bool); !stays {
		return "immutable"
	}
	for _, field := range []string{"data", "binaryData"} {
		want, _ := desired[field].(map[string]any)
		have, _ := live[field].(map[string]any)
		if (comparison{}).maps(field, "", want, have) != "" || len(want) != len(have) {
			return field
		}
	}
	return ""
}

// claimChange allows growth of a PersistentVolumeClaim and nothing else.
func claimChange(desired, live map[string]any) string {
	if path := changed(desired, live, "spec.accessModes", "spec.storageClassName", "spec.volumeMode", "spec.volumeName",
		"spec.selector", "spec.dataSource", "spec.dataSourceRef"); path != "" {
		return path
	}
	const size = "spec.resources.requests.storage"
	want, wanted := quantityAt(desired, size)
	have, there := quantityAt(live, size)
	if wanted && there && want.Cmp(have) < 0 {
		return size
	}
	return ""
}

// asRefusal turns the server's refusal into an error that states who can do what. Its own "field is immutable" becomes an ImmutableError
// where it was not recognised above, as for removals inside a Job's template. Any other refusal of the content becomes a
// RejectedError. Errors worth retrying come back as they are.
func asRefusal(want intent, err error) error {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || (!apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err)) {
		return err
	}
	if details := status.Status().Details; details != nil {
		for _, cause := range details.Causes {
			if strings.Contains(cause.Message, "immutable") || strings.Contains(cause.Message, "updates to statefulset spec") {
				return &ImmutableError{Object: want.ref(), Path: cause.Field, WayOut: wayOut(want.gvk.Kind)}
			}
		}
	}
	return &RejectedError{Object: want.ref(), Err: err}
}

// mayRecreate reports whether the caller's wish to recreate can be granted: never for data and keys.
func mayRecreate(live client.Object, opts options) bool {
	if _, claim := live.(*corev1.PersistentVolumeClaim); claim {
		return false
	}
	return opts.recreate && !isKey(live)
}

// recreatePropagation is what happens to the dependents of an object that is recreated. A StatefulSet's successor adopts
// the pods; a Deployment's new selector or a Job's new template would leave the old pods running for ever.
func recreatePropagation(gvk schema.GroupVersionKind) metav1.DeletionPropagation {
	if gvk.Group == "apps" && gvk.Kind == "StatefulSet" {
		return metav1.DeletePropagationOrphan
	}
	return metav1.DeletePropagationBackground
}

func at(object map[string]any, path string) (any, bool) {
	value, found, err := unstructured.NestedFieldNoCopy(object, strings.Split(path, ".")...)
	return value, found && err == nil && value != nil
}

func stringAt(object map[string]any, path string) (string, bool) {
	value, found := at(object, path)
	s, ok := value.(string)
	return s, found && ok
}

func quantityAt(object map[string]any, path string) (resource.Quantity, bool) {
	s, found := stringAt(object, path)
	if !found {
		return resource.Quantity{}, false
	}
	q, err := resource.ParseQuantity(s)
	return q, err == nil
}

func lastOf(path string) string {
	return path[strings.LastIndex(path, ".")+1:]
}

// shown is a value for a message: text, numbers and switches only, cut to 80 characters.
func shown(object map[string]any, path string) string {
	const maxLength = 80
	value, _ := at(object, path)
	switch value.(type) {
	case string, bool, int64, float64:
		return fmt.Sprintf("%.*s", maxLength, fmt.Sprint(value))
	}
	return ""
}
