// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// difference returns the path of the first thing in desired that live does not have, or "" when live has all of it.
// What only live has does not count: defaults, fields of others, injected containers; except where it cannot stand beside
// ours (foreign). An empty map is there or not: it may be the source of a volume. Lists that Kubernetes merges by a
// key are compared by that key, in any order; all others must have the same length, element by element.
func difference(kind schema.GroupKind, desired, live map[string]any) string {
	return comparison{kind: kind, exact: true}.maps("", "", desired, live)
}

// comparison has the merge keys of one kind. The schema of the server has them too, but not for CRDs without asking,
// and holding it costs tens of megabytes; a kind or list that is missing here costs one superfluous call, no more.
type comparison struct {
	kind schema.GroupKind
	// exact is true if an empty map differs from none. It does not count for what cannot be changed anyway.
	exact bool
}

func (c comparison) maps(path, field string, desired, live map[string]any) string {
	if c.exact && live == nil && len(desired) == 0 && path != "" || isAtomicMap(field) && len(desired) != len(live) || c.foreign(field, desired, live) {
		return path
	}
	for _, key := range sortedKeys(desired) {
		if key == IntentAnnotation {
			continue // compared by itself: as a path it does not show what differs
		}
		at := key
		if path != "" {
			at = path + "." + key
		}
		if d := c.values(at, key, desired[key], live[key]); d != "" {
			return d
		}
	}
	return ""
}

func (c comparison) values(path, field string, desired, live any) string {
	switch want := desired.(type) {
	case nil:
		return ""
	case map[string]any:
		have, ok := live.(map[string]any)
		if !ok && live != nil {
			return path
		}
		return c.maps(path, field, want, have)
	case []any:
		have, ok := live.([]any)
		if !ok && live != nil {
			return path
		}
		return c.lists(path, field, want, have)
	default:
		if equality.Semantic.DeepEqual(desired, live) {
			return ""
		}
		return path
	}
}

func (c comparison) lists(path, field string, desired, live []any) string {
	if field == "finalizers" {
		return c.sets(path, desired, live)
	}
	key := c.mergeKey(field)
	if key == nil {
		if len(desired) != len(live) {
			return path
		}
		for i := range desired {
			if d := c.values(path+"["+strconv.Itoa(i)+"]", "", desired[i], live[i]); d != "" {
				return d
			}
		}
		return ""
	}
	for i := range desired {
		want, ok := desired[i].(map[string]any)
		if !ok {
			return path
		}
		id := key(want)
		at := fmt.Sprintf("%s[%s]", path, id)
		have := find(live, id, key)
		if have == nil {
			return at
		}
		if d := c.maps(at, field+"[]", want, have); d != "" {
			return d
		}
	}
	return ""
}

func (c comparison) sets(path string, desired, live []any) string {
	for _, want := range desired {
		found := false
		for _, have := range live {
			found = found || want == have
		}
		if !found {
			return path
		}
	}
	return ""
}

func find(list []any, id string, key func(map[string]any) string) map[string]any {
	for _, item := range list {
		if m, ok := item.(map[string]any); ok && key(m) == id {
			return m
		}
	}
	return nil
}

// isAtomicMap reports whether Kubernetes replaces the map of this name as a whole (x-kubernetes-map-type: atomic), so that
// a key too many is a difference. A selector with one more label selects other pods.
func isAtomicMap(field string) bool {
	switch field {
	case "selector", "podSelector", "namespaceSelector", "labelSelector", "matchLabels", "nodeSelector":
		return true
	}
	return false
}

// mergeKey returns how items of the list of this name are identified, or nil for a list that is replaced as a whole.
// Source: the listType and listMapKey markers of k8s.io/api.
func (c comparison) mergeKey(field string) func(map[string]any) string {
	switch field {
	case "ownerReferences":
		return byFields("uid")
	case "conditions":
		return byFields("type")
	}
	switch c.kind {
	case schema.GroupKind{Kind: "Service"}:
		if field == "ports" {
			return byFields("port", "protocol")
		}
	case schema.GroupKind{Kind: "ServiceAccount"}:
		if field == "secrets" {
			return byFields("name")
		}
	case schema.GroupKind{Kind: "Pod"}, schema.GroupKind{Group: "apps", Kind: "Deployment"},
		schema.GroupKind{Group: "apps", Kind: "StatefulSet"}, schema.GroupKind{Group: "apps", Kind: "DaemonSet"},
		schema.GroupKind{Group: "batch", Kind: "Job"}, schema.GroupKind{Group: "batch", Kind: "CronJob"}:
		return podMergeKey(field)
	}
	return nil
}

func podMergeKey(field string) func(map[string]any) string {
	switch field {
	case "containers", "initContainers", "ephemeralContainers", "volumes", "env", "imagePullSecrets", "resourceClaims", "schedulingGates":
		return byFields("name")
	case "ports":
		return byFields("containerPort", "protocol")
	case "volumeMounts":
		return byFields("mountPath")
	case "volumeDevices":
		return byFields("devicePath")
	case "hostAliases":
		return byFields("ip")
	case "topologySpreadConstraints":
		return byFields("topologyKey", "whenUnsatisfiable")
	}
	return nil
}

func byFields(names ...string) func(map[string]any) string {
	return func(item map[string]any) string {
		parts := make([]string, 0, len(names))
		for _, name := range names {
			value := item[name]
			if value == nil && name == "protocol" {
				value = "TCP" // the server's default for a key field
			}
			parts = append(parts, fmt.Sprint(value))
		}
		return strings.Join(parts, "/")
	}
}

// Some parts of a pod template may have one of several members only: the source of a volume or a variable, the handler of a probe.
// Server-side apply adds our member and leaves the foreign one, so that the server refuses both. And it removes nothing from an
// emptyDir of ours, which is empty. Such parts are replaced by ours as a whole before the apply.

// foreign reports whether a part called field has members in the live object that ours lacks and that cannot stand beside ours.
func (c comparison) foreign(field string, desired, live map[string]any) bool {
	if !c.hasTemplate() {
		return false
	}
	var members []string // all of them, if there are none
	switch field {
	case "emptyDir", "volumes[]":
	case "env[]":
		members = []string{"value", "valueFrom"}
	case "startupProbe", "livenessProbe", "readinessProbe", "preStop", "postStart":
		members = []string{"exec", "grpc", "httpGet", "sleep", "tcpSocket"}
	default:
		return false
	}
	for key := range live {
		if _, ours := desired[key]; !ours && (len(members) == 0 || slices.Contains(members, key)) {
			return true
		}
	}
	return false
}

func (c comparison) hasTemplate() bool {
	switch c.kind {
	case schema.GroupKind{Group: "apps", Kind: "Deployment"}, schema.GroupKind{Group: "apps", Kind: "StatefulSet"},
		schema.GroupKind{Group: "apps", Kind: "DaemonSet"}:
		return true
	}
	return false
}

// operation is one of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// replacements are the operations that put our parts in the place of those with foreign members.
func (c comparison) replacements(path, field string, desired, live any) []operation {
	switch want := desired.(type) {
	case map[string]any:
		have, ok := live.(map[string]any)
		if !ok {
			return nil
		}
		if c.foreign(field, want, have) {
			return []operation{{Op: "replace", Path: path, Value: want}}
		}
		var out []operation
		for _, key := range sortedKeys(want) {
			if path != "" || key == "spec" { // there are no others elsewhere, and keys there would need escapes
				out = append(out, c.replacements(path+"/"+key, key, want[key], have[key])...)
			}
		}
		return out
	case []any:
		have, _ := live.([]any)
		id := c.mergeKey(field)
		if id == nil {
			return nil
		}
		var out []operation
		for i := range have {
			item, ok := have[i].(map[string]any)
			if !ok {
				continue
			}
			if ours := find(want, id(item), id); ours != nil {
				out = append(out, c.replacements(path+"/"+strconv.Itoa(i), field+"[]", ours, item)...)
			}
		}
		return out
	default:
		return nil
	}
}

// replaceForeign removes members that exclude ours from the live object. It changes the object that was compared, or
// nothing.
func (a *Applier) replaceForeign(ctx context.Context, want intent, live client.Object, liveFields map[string]any) error {
	operations := comparison{kind: want.gvk.GroupKind()}.replacements("", "", want.object.Object, liveFields)
	if len(operations) == 0 {
		return nil
	}
	patch, err := json.Marshal(append([]operation{{Op: "test", Path: "/metadata/resourceVersion", Value: live.GetResourceVersion()}}, operations...))
	if err != nil {
		return fmt.Errorf("encoding a patch of %s: %w", want.ref(), err)
	}
	patched, ok := live.DeepCopyObject().(client.Object)
	if !ok {
		return nil
	}
	err = a.client.Patch(ctx, patched, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(FieldManager))
	if err != nil {
		return fmt.Errorf("replacing %s of %s: %w", operations[0].Path, want.ref(), err)
	}
	return nil
}
