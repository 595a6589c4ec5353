// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package label makes the labels and annotations of rendered objects.
package label

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"maps"
	"slices"
)

// Keys of the recommended Kubernetes labels,
// https://kubernetes.io/docs/concepts/overview/working-with-objects/common-labels/.
const (
	Name      = "app.kubernetes.io/name"
	Instance  = "app.kubernetes.io/instance"
	Component = "app.kubernetes.io/component"
	ManagedBy = "app.kubernetes.io/managed-by"
)

// Manager is the value of the managed-by label on everything that Coxswain makes; its caches hold only such objects.
const Manager = "coxswain"

// DefaultContainer is the annotation by which kubectl logs and exec choose a pod's main container.
const DefaultContainer = "kubectl.kubernetes.io/default-container"

// Set is the identity of one component of one object.
type Set struct {
	// Name is the daemon: slurmctld, slurmd, slurmdbd, slurmrestd, login.
	Name string
	// Instance is the name of the custom resource.
	Instance string
	// Component is the role: controller, worker, accounting, restapi, login.
	Component string
}

// Selector returns the two labels by which workloads and Services select pods. They never change.
func (s Set) Selector() map[string]string {
	return map[string]string{Name: s.Name, Instance: s.Instance}
}

// Labels returns all labels of an object: those of each user map in order, later ones winning, and the generated ones,
// which win over all.
func (s Set) Labels(user ...map[string]string) map[string]string {
	out := Merge(user...)
	maps.Copy(out, map[string]string{Name: s.Name, Instance: s.Instance, Component: s.Component, ManagedBy: Manager})
	return out
}

// Merge joins maps into a new one, never nil; later maps win.
func Merge(all ...map[string]string) map[string]string {
	out := map[string]string{}
	for _, m := range all {
		maps.Copy(out, m)
	}
	return out
}

// Digest is the SHA-256 of content by name, in hexadecimal, independent of order. Annotations carry it so that pods
// notice changed content without showing it.
func Digest(content map[string][]byte) string { return digest(sha256.New(), content) }

// TextDigest is the Digest of texts by name.
func TextDigest(texts map[string]string) string {
	content := make(map[string][]byte, len(texts))
	for name, text := range texts {
		content[name] = []byte(text)
	}
	return Digest(content)
}

// Seal is a Digest for content that somebody could guess, such as a password. Nobody can try guesses against it without the
// key, which is a secret itself.
func Seal(key []byte, content map[string][]byte) string {
	return digest(hmac.New(sha256.New, key), content)
}

func digest(h hash.Hash, content map[string][]byte) string {
	for _, key := range slices.Sorted(maps.Keys(content)) {
		sum := sha256.Sum256(content[key])
		h.Write([]byte(key))
		h.Write([]byte{0})
		h.Write(sum[:])
	}
	return hex.EncodeToString(h.Sum(nil))
}
