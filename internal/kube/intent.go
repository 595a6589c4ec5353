// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// IntentAnnotation is on every object that Coxswain applies. Its value is a short digest of what was applied last; it
// also proves that the object is ours.
const IntentAnnotation = "coxswain.dev/intent"

// intent is a desired object as it goes to the server, and its digest.
type intent struct {
	object *unstructured.Unstructured
	gvk    schema.GroupVersionKind
	digest string
	// standing is a digest of everything, values of Secrets too, together with the owner. It never leaves the Applier's
	// memory, where a shared object is settled per owner.
	standing string
}

func (i intent) ref() Ref {
	return Ref{Kind: i.gvk.Kind, Namespace: i.object.GetNamespace(), Name: i.object.GetName()}
}

// newIntent turns a desired typed object into what is sent: without status, without what the server sets, without
// fields that were never filled in, and with the owner's reference and the digest. The digest does not cover the owner,
// which is compared by itself.
func newIntent(scheme *runtime.Scheme, owner, desired client.Object, opts options) (intent, error) {
	gvk, err := apiutil.GVKForObject(desired, scheme)
	if err != nil {
		return intent{}, fmt.Errorf("finding the kind of %T %s: %w", desired, desired.GetName(), err)
	}
	content, err := fields(desired)
	if err != nil {
		return intent{}, fmt.Errorf("encoding %s %s: %w", gvk.Kind, desired.GetName(), err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(gvk)
	if u.GetNamespace() != owner.GetNamespace() {
		return intent{}, fmt.Errorf("applying %s %s: it is in namespace %q, its owner in %q", gvk.Kind, u.GetName(), u.GetNamespace(), owner.GetNamespace())
	}
	delete(content, "status")
	metadata, _ := content["metadata"].(map[string]any)
	for _, set := range []string{"creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generation",
		"managedFields", "ownerReferences", "resourceVersion", "selfLink", "uid"} {
		delete(metadata, set)
	}
	unstructured.RemoveNestedField(content, "metadata", "annotations", IntentAnnotation)
	ownRollingUpdate(gvk.GroupKind(), content)
	digest, err := digestOf(content, desired)
	if err != nil {
		return intent{}, fmt.Errorf("encoding %s %s: %w", gvk.Kind, desired.GetName(), err)
	}
	whole, err := sum(content)
	if err != nil {
		return intent{}, fmt.Errorf("encoding %s %s: %w", gvk.Kind, desired.GetName(), err)
	}
	annotations := u.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[IntentAnnotation] = digest
	u.SetAnnotations(annotations)

	reference, err := ownerReference(scheme, owner, opts)
	if err != nil {
		return intent{}, err
	}
	u.SetOwnerReferences([]metav1.OwnerReference{reference})
	return intent{object: u, gvk: gvk, digest: digest, standing: whole + " " + string(owner.GetUID())}, nil
}

// ownRollingUpdate sets the parameters of a rolling update where the server would fill them in. As ours they are removed when the
// strategy becomes Recreate or OnDelete; the server's defaults would stay, and it refuses that combination. Source of the values:
// k8s.io/api/apps/v1, which promises not to change them.
func ownRollingUpdate(kind schema.GroupKind, content map[string]any) {
	field, defaults := "updateStrategy", map[string]any{}
	switch kind {
	case schema.GroupKind{Group: "apps", Kind: "Deployment"}:
		field, defaults = "strategy", map[string]any{"maxSurge": "25%", "maxUnavailable": "25%"}
	case schema.GroupKind{Group: "apps", Kind: "StatefulSet"}:
		defaults["partition"] = int64(0)
	case schema.GroupKind{Group: "apps", Kind: "DaemonSet"}:
		defaults["maxSurge"], defaults["maxUnavailable"] = int64(0), int64(1)
	default:
		return
	}
	kindOfUpdate, _, _ := unstructured.NestedString(content, "spec", field, "type")
	if kindOfUpdate != "" && kindOfUpdate != "RollingUpdate" {
		return
	}
	parameters, _, _ := unstructured.NestedMap(content, "spec", field, "rollingUpdate")
	maps.Copy(defaults, parameters)
	_ = unstructured.SetNestedMap(content, defaults, "spec", field, "rollingUpdate")
	_ = unstructured.SetNestedField(content, "RollingUpdate", "spec", field, "type")
}

// digestOf is the first 16 hexadecimal digits of the SHA-256 of the canonical JSON. Values of a Secret do not enter it, only their
// names: a user who may read metadata could try guesses against a digest. Changed values are seen by comparing them.
func digestOf(content map[string]any, desired client.Object) (string, error) {
	if _, isSecret := desired.(*corev1.Secret); isSecret {
		content = maps.Clone(content)
		data, _ := content["data"].(map[string]any)
		names := make(map[string]any, len(data))
		for name := range data {
			names[name] = ""
		}
		content["data"] = names
	}
	digest, err := sum(content)
	if err != nil {
		return "", err
	}
	return digest[:16], nil
}

// sum is the SHA-256 of the canonical JSON, in hexadecimal digits.
func sum(content map[string]any) (string, error) {
	canonical, err := json.Marshal(content) // sorts the keys of maps
	if err != nil {
		return "", err
	}
	hash := sha256.Sum256(canonical)
	return hex.EncodeToString(hash[:]), nil
}

// fields is obj as the server sees it: the same conversion for desired and live objects, so that equal means equal.
func fields(obj client.Object) (map[string]any, error) {
	if secret, ok := obj.(*corev1.Secret); ok && len(secret.StringData) > 0 {
		obj = withStringData(secret)
	}
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return u.DeepCopy().Object, nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, err
	}
	dropUnset(reflect.ValueOf(obj), content)
	return content, nil
}

// withStringData does what the server does with stringData, which it never returns.
func withStringData(secret *corev1.Secret) *corev1.Secret {
	out := secret.DeepCopy()
	if out.Data == nil {
		out.Data = map[string][]byte{}
	}
	for name, value := range out.StringData {
		out.Data[name] = []byte(value)
	}
	out.StringData = nil
	return out
}

// dropUnset removes from content, the conversion of v, fields that nobody has set and JSON shows all the same. Those are nulls of
// nil fields, and zero structs whose "omitempty" encoding/json cannot honour. The server would replace them, such as a Service's
// targetPort 0. What a pointer points to stays, even when it is zero, and so does everything inside types that encode themselves
// (raw JSON of users with nulls on purpose).
func dropUnset(v reflect.Value, content any) {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		if v.IsNil() {
			return
		}
		v = v.Elem()
	}
	switch content := content.(type) {
	case map[string]any:
		switch {
		case v.Kind() == reflect.Struct && !encodesItself(v.Type()):
			dropUnsetFields(v, content)
		case v.Kind() == reflect.Map:
			for _, key := range v.MapKeys() {
				dropUnset(v.MapIndex(key), content[key.String()])
			}
		}
	case []any:
		if v.Kind() == reflect.Slice && v.Len() == len(content) {
			for i := range content {
				dropUnset(v.Index(i), content[i])
			}
		}
	}
}

func dropUnsetFields(v reflect.Value, content map[string]any) {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		name, settings, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "-" || !field.IsExported() {
			continue
		}
		if name == "" {
			if field.Anonymous {
				dropUnset(v.Field(i), content)
			}
			continue
		}
		value, present := content[name]
		switch {
		case !present:
		case value == nil:
			delete(content, name)
		case strings.Contains(settings, "omitempty") && v.Field(i).Kind() == reflect.Struct && v.Field(i).IsZero():
			delete(content, name)
		default:
			dropUnset(v.Field(i), value)
			left, isMap := value.(map[string]any)
			if isMap && len(left) == 0 && strings.Contains(settings, "omitempty") && v.Field(i).Kind() == reflect.Struct && !encodesItself(v.Field(i).Type()) {
				delete(content, name) // a struct in which nothing is filled in but empty lists and maps
			}
		}
	}
}

func encodesItself(t reflect.Type) bool {
	marshaler := reflect.TypeFor[json.Marshaler]()
	return t.Implements(marshaler) || reflect.PointerTo(t).Implements(marshaler)
}
