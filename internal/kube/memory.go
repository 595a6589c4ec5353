// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/lru"
)

// memorySize bounds what an Applier remembers; an entry is about 200 bytes. Evicting one costs one comparison, or for an
// object that the server stores differently one call.
const memorySize = 16384

// memory is the second line of defence against writing for ever. The first is the comparison with the live object; it
// never settles for an object that the server, an admission webhook or a feature gate stores differently from what was
// sent. So the memory keeps which intent stands at which resource version, and an intent is sent once per version.
type memory struct{ settled *lru.Cache }

// settledAt is an intent that was in place, as far as the server lets it, at a resource version.
type settledAt struct {
	resourceVersion string
	standing        string
	// reported is true once it is logged that the server stores the object differently.
	reported bool
}

func newMemory() memory { return memory{settled: lru.New(memorySize)} }

// holds reports whether the intent stood at the resource version of the live object or later. Later means that the cache
// has not seen our own write yet, so that comparing with it would repeat the call.
func (m memory) holds(uid types.UID, liveVersion, standing string) bool {
	s, ok := m.get(uid)
	if !ok || s.standing != standing {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(s.resourceVersion, liveVersion)
	return err == nil && order >= 0
}

// settle remembers that the intent stands at a resource version.
func (m memory) settle(uid types.UID, resourceVersion, standing string) {
	old, _ := m.get(uid)
	m.settled.Add(uid, settledAt{
		resourceVersion: resourceVersion, standing: standing,
		reported: old.reported && old.standing == standing,
	})
}

// report returns true the first time it is asked about an intent that has been settled.
func (m memory) report(uid types.UID) bool {
	s, ok := m.get(uid)
	if !ok || s.reported {
		return false
	}
	s.reported = true
	m.settled.Add(uid, s)
	return true
}

func (m memory) get(uid types.UID) (settledAt, bool) {
	value, ok := m.settled.Get(uid)
	if !ok {
		return settledAt{}, false
	}
	s, ok := value.(settledAt)
	return s, ok
}
