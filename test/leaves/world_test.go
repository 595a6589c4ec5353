// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package leaves_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

// ours are the kinds of Coxswain's own whose status is compared; made are those that it makes.
var (
	ours = []schema.GroupVersionKind{
		{Group: "slinky.slurm.net", Version: "v1beta1", Kind: "Accounting"}, {Group: "slinky.slurm.net", Version: "v1beta1", Kind: "Controller"},
		{Group: "slinky.slurm.net", Version: "v1beta1", Kind: "LoginSet"}, {Group: "slinky.slurm.net", Version: "v1beta1", Kind: "NodeSet"},
		{Group: "slinky.slurm.net", Version: "v1beta1", Kind: "RestApi"}, {Group: "slinky.slurm.net", Version: "v1beta1", Kind: "Token"},
	}
	made = []schema.GroupVersionKind{
		{Version: "v1", Kind: "ConfigMap"}, {Version: "v1", Kind: "Secret"}, {Version: "v1", Kind: "Service"},
		{Version: "v1", Kind: "PersistentVolumeClaim"}, {Version: "v1", Kind: "Pod"},
		{Group: "apps", Version: "v1", Kind: "StatefulSet"}, {Group: "apps", Version: "v1", Kind: "Deployment"},
		{Group: "apps", Version: "v1", Kind: "ControllerRevision"}, {Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"},
		{Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"}, {Group: "batch", Version: "v1", Kind: "CronJob"},
		{Group: "monitoring.coreos.com", Version: "v1", Kind: "ServiceMonitor"},
	}
)

// moments are points in time, wherever they are written.
var moments = regexp.MustCompile(`\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z`)

// world is what there is, by "Kind name", as YAML.
type world map[string]string

// of returns the part of the world that belongs to one scene.
func (w world) of(scene string) map[string]string {
	out := map[string]string{}
	for key, text := range w {
		if strings.Contains(key, scene) {
			out[key] = text
		}
	}
	return out
}

// look reads the world without what differs from one object to the next of the same content: identities, versions, times.
func look(t *testing.T, o *operator.Operator) world {
	t.Helper()
	out := world{}
	for _, gvk := range slices.Concat(ours, made) {
		for _, item := range list(t, o, gvk) {
			if slices.Contains(made, gvk) && item.GetLabels()["app.kubernetes.io/managed-by"] != "coxswain" {
				continue
			}
			obj := strip(item.DeepCopy(), slices.Contains(made, gvk))
			text, err := yaml.Marshal(obj.Object)
			if err != nil {
				t.Fatal(err)
			}
			out[gvk.Kind+" "+item.GetName()] = moments.ReplaceAllString(string(text), "MOMENT")
		}
	}
	return out
}

func list(t *testing.T, o *operator.Operator, gvk schema.GroupVersionKind) []unstructured.Unstructured {
	t.Helper()
	items := &unstructured.UnstructuredList{}
	items.SetGroupVersionKind(gvk)
	if err := o.User.List(t.Context(), items, client.InNamespace(o.Namespace)); err != nil {
		t.Fatalf("listing %s: %v", gvk.Kind, err)
	}
	return items.Items
}

func strip(obj *unstructured.Unstructured, withoutStatus bool) *unstructured.Unstructured {
	for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"} {
		unstructured.RemoveNestedField(obj.Object, "metadata", field)
	}
	annotations := obj.GetAnnotations()
	delete(annotations, "coxswain.dev/intent")  // a digest of all this, with the owner's uid
	delete(annotations, "coxswain.dev/opening") // a time
	obj.SetAnnotations(annotations)
	if _, generated := obj.GetLabels()["coxswain.dev/key"]; generated {
		unstructured.RemoveNestedField(obj.Object, "data") // random
	}
	unstructured.RemoveNestedField(obj.Object, "spec", "template", "metadata", "annotations", "slinky.slurm.net/ssh-host-keys-hash")
	readTokens(obj)
	owners := obj.GetOwnerReferences()
	for i := range owners {
		owners[i].UID = ""
	}
	obj.SetOwnerReferences(owners)
	for _, field := range []string{"clusterIP", "clusterIPs", "healthCheckNodePort"} {
		unstructured.RemoveNestedField(obj.Object, "spec", field)
	}
	if withoutStatus {
		unstructured.RemoveNestedField(obj.Object, "status")
		return obj
	}
	forgetNumbers(obj.Object["status"])
	if conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions"); conditions != nil {
		slices.SortFunc(conditions, func(a, b any) int { return strings.Compare(typeOf(a), typeOf(b)) })
		_ = unstructured.SetNestedSlice(obj.Object, conditions, "status", "conditions")
	}
	return obj
}

func typeOf(condition any) string {
	m, _ := condition.(map[string]any)
	return fmt.Sprint(m["type"])
}

// readTokens puts the claims of a JWT in its place, which of the keys of surroundings.yaml has signed it, and how long it
// lives for when it was issued and when it ends.
func readTokens(obj *unstructured.Unstructured) {
	data, _, _ := unstructured.NestedStringMap(obj.Object, "data")
	for key, encoded := range data {
		token, err := base64.StdEncoding.DecodeString(encoded)
		claims := jwt.MapClaims{}
		if err != nil {
			continue
		}
		if _, _, err := jwt.NewParser().ParseUnverified(string(token), claims); err != nil {
			continue
		}
		issued, _ := claims.GetIssuedAt()
		expires, _ := claims.GetExpirationTime()
		if issued != nil && expires != nil {
			claims["lives"] = expires.Sub(issued.Time).String()
		}
		for _, varying := range []string{"iat", "nbf", "exp", "jti"} {
			delete(claims, varying)
		}
		for _, name := range []string{"the-jwt-key", "another-jwt-key", "a-third-jwt-key"} {
			if verifies(string(token), name+"-of-at-least-sixteen-bytes") {
				claims["signed with"] = name
			}
		}
		data[key] = fmt.Sprint(claims)
		_ = unstructured.SetNestedStringMap(obj.Object, data, "data")
	}
}

func verifies(token, key string) bool {
	_, err := jwt.Parse(token, func(*jwt.Token) (any, error) { return []byte(key), nil })
	return err == nil
}

// forgetNumbers removes times and generations from a status.
func forgetNumbers(value any) {
	switch v := value.(type) {
	case map[string]any:
		delete(v, "observedGeneration")
		delete(v, "lastTransitionTime")
		for _, item := range v {
			forgetNumbers(item)
		}
	case []any:
		for _, item := range v {
			forgetNumbers(item)
		}
	}
}

// forgive removes from a world what may rightly differ between an object that was changed and one that was made so. That is which
// workers have been replaced and have their successors' claims, how a NodeSet counts them, and the revisions before the newest.
func (w world) forgive() world {
	out, newest := world{}, map[string]int64{}
	for key, text := range w {
		kind, name, _ := strings.Cut(key, " ")
		switch kind {
		case "Pod", "PersistentVolumeClaim", "NodeSet":
		case "ControllerRevision":
			var revision struct {
				Revision int64          `json:"revision"`
				Data     map[string]any `json:"data"`
			}
			if err := yaml.Unmarshal([]byte(text), &revision); err != nil {
				out[key] = err.Error()
				continue
			}
			scene := name[:len(sceneName(0))]
			if revision.Revision >= newest[scene] {
				newest[scene] = revision.Revision
				out["the newest revision of "+scene] = fmt.Sprint(revision.Data)
			}
		default:
			out[key] = text
		}
	}
	return out
}

// clear deletes everything of all scenes, as the garbage collector would, which does not run here. What a late reconcile makes for
// an owner that has just gone is deleted in the next round.
func clear(t *testing.T, o *operator.Operator) {
	t.Helper()
	poll(t, func() error {
		var left []string
		for _, gvk := range slices.Concat(ours, made) {
			for _, item := range list(t, o, gvk) {
				if strings.Contains(item.GetName(), "leaf-") {
					left = append(left, gvk.Kind+" "+item.GetName())
					remove(t, o, &item)
				}
			}
		}
		if len(left) > 0 {
			return fmt.Errorf("still there: %v", left)
		}
		return nil
	})
	o.Settle()
}

// collect ends the deletions that wait for the garbage collector, which has nothing to do for them here.
func collect(t *testing.T, o *operator.Operator) {
	t.Helper()
	for _, gvk := range made {
		for _, item := range list(t, o, gvk) {
			if item.GetDeletionTimestamp() != nil {
				release(t, o, &item)
			}
		}
	}
	o.Settle()
}

func release(t *testing.T, o *operator.Operator, obj *unstructured.Unstructured) {
	t.Helper()
	err := o.User.Patch(t.Context(), obj, client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"finalizers": null}}`)))
	if client.IgnoreNotFound(err) != nil {
		t.Fatalf("releasing %s %s: %v", obj.GetKind(), obj.GetName(), err)
	}
}

func remove(t *testing.T, o *operator.Operator, obj *unstructured.Unstructured) {
	t.Helper()
	err := o.User.Delete(t.Context(), obj, client.GracePeriodSeconds(0), client.PropagationPolicy("Background"))
	if err == nil && len(obj.GetFinalizers()) > 0 {
		release(t, o, obj)
	}
	if client.IgnoreNotFound(err) != nil {
		t.Fatalf("deleting %s %s: %v", obj.GetKind(), obj.GetName(), err)
	}
}

// problems returns the message of an object that its spec cannot be carried out, or not before something that it
// refers to is there.
func problems(obj *unstructured.Unstructured) string {
	conditions, _, err := unstructured.NestedSlice(obj.Object, "status", "conditions")
	if err != nil {
		return err.Error()
	}
	for _, item := range conditions {
		c, _ := item.(map[string]any)
		stalled := c["type"] == "Stalled" && c["status"] == "True"
		missing := c["type"] == "Ready" && c["status"] == "False" && slices.Contains([]any{"KeyMissing", "ReferenceNotFound"}, c["reason"])
		if stalled || missing {
			return fmt.Sprint(c["message"])
		}
	}
	return ""
}

// patience is for hundreds of objects on a machine that is busy with other things.
const patience = 3 * time.Minute

// poll repeats a check until it is satisfied.
func poll(t *testing.T, check func() error) {
	t.Helper()
	var wrong error
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		wrong = check()
		return wrong == nil, nil
	})
	if err != nil {
		t.Fatalf("still wrong after %s: %v", patience, wrong)
	}
}
