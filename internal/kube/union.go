// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

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
