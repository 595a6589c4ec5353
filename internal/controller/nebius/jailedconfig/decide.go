// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package jailedconfig

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	"github.com/coxswain-hpc/coxswain/internal/node/jail/batch"
)

// member is a JailedConfig of a group, with what it names.
type member struct {
	config *nebiusv1alpha1.JailedConfig
	// from is nil when it does not exist.
	from *corev1.ConfigMap
}

// plan is what is to be done for a group.
type plan struct {
	// files are the files of all members whose ConfigMap exists.
	files []batch.File
	// missing names what does not exist, mistakes what is wrong otherwise, by member. Nothing is written when there are mistakes: the files of
	// a group belong together.
	missing, mistakes map[string]string
	// reconfigure reports whether Slurm has to reread its configuration.
	reconfigure bool
}

// defaultMode are the permissions of files for which the spec names none.
const defaultMode = 0o644

func decide(members []member) plan {
	p := plan{missing: map[string]string{}, mistakes: map[string]string{}}
	owners := map[string]string{}
	for _, m := range members {
		name := m.config.Name
		if m.from == nil {
			p.missing[name] = fmt.Sprintf("ConfigMap %s does not exist", m.config.Spec.ConfigMap.Name)
			continue
		}
		for _, item := range items(m) {
			content, ok := content(m.from, item.Key)
			owner, taken := owners[item.Path]
			switch {
			case !ok:
				p.missing[name] = fmt.Sprintf("ConfigMap %s has no key %s", m.from.Name, item.Key)
				p.mistakes[name] = p.missing[name]
			case taken:
				p.mistakes[name] = fmt.Sprintf("%s is written by JailedConfig %s already: name another path", item.Path, owner)
			default:
				owners[item.Path] = name
				p.files = append(p.files, batch.File{Path: item.Path, Content: content, Mode: mode(m.config, item)})
			}
		}
		p.reconfigure = p.reconfigure || slices.Contains(m.config.Spec.UpdateActions, nebiusv1alpha1.UpdateActionReconfigure)
	}
	return p
}

// items returns the keys and paths of a member. Without items each key is its own path, which works for none: a key has no slash.
func items(m member) []nebiusv1alpha1.JailedConfigItem {
	if len(m.config.Spec.Items) > 0 {
		return m.config.Spec.Items
	}
	var out []nebiusv1alpha1.JailedConfigItem
	for _, keys := range [][]string{slices.Sorted(maps.Keys(m.from.Data)), slices.Sorted(maps.Keys(m.from.BinaryData))} {
		for _, key := range keys {
			out = append(out, nebiusv1alpha1.JailedConfigItem{Key: key, Path: key})
		}
	}
	return out
}

func content(m *corev1.ConfigMap, key string) ([]byte, bool) {
	if text, ok := m.Data[key]; ok {
		return []byte(text), true
	}
	data, ok := m.BinaryData[key]
	return data, ok
}

func mode(c *nebiusv1alpha1.JailedConfig, item nebiusv1alpha1.JailedConfigItem) fs.FileMode {
	bits := int32(defaultMode)
	if c.Spec.DefaultMode != nil {
		bits = *c.Spec.DefaultMode
	}
	if item.Mode != nil {
		bits = *item.Mode
	}
	return batch.ModeOf(uint32(bits))
}
