// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"maps"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// maxOwners bounds for how many owners unseen writes are kept; each worker is one. Forgetting one costs the protection, not
// correctness: writes carry preconditions.
const maxOwners = 16384

// written is what this process has written and the cache has not shown yet, which Kubernetes' own controllers call expectations. It
// answers whether the cache has caught up with what was written on behalf of an owner. A decision from an older view repeats what
// has been done: it creates a second pod for the one that is missing only in the cache. At rest it holds nothing and costs nothing.
//
// An object may be its own owner: a worker pod that the controller of workers has marked, or a NodeSet whose status was written.
//
// controller-runtime can make reads block until the cache has seen a write. That holds a worker of the queue, and does
// not cover objects that are applied as unstructured and read as typed ones; returning and being woken by the event does.
type written struct {
	cached client.Reader
	live   client.Reader
	scheme *runtime.Scheme

	mu     sync.Mutex
	owners *lru.Cache // of unseenOf by objectKey
}

// objectKey is an object of some kind and name.
type objectKey struct {
	gvk schema.GroupVersionKind
	key client.ObjectKey
}

// unseenOf are the writes for an owner that the cache has not shown yet. Those for another owner of the same name count for nothing.
type unseenOf struct {
	owner  types.UID
	writes map[objectKey]unseen
}

// unseen is a write that the cache has not shown yet.
type unseen struct {
	uid             types.UID
	resourceVersion string // of the object as written; empty when it was deleted
	generation      int64  // of the object as written
	// existed is true if the cache had the object when it was written: once the cache lacks it, it is gone.
	existed bool
}

func newWritten(cached, live client.Reader, scheme *runtime.Scheme) *written {
	return &written{cached: cached, live: live, scheme: scheme, owners: lru.New(maxOwners)}
}

// Behind reports whether the cache still lacks something that was written for owner, or lacked it when owner was read from there.
// If so, the reconciler returns without deciding anything: the event that closes the gap wakes it, or has it come back when it
// arrived meanwhile.
func (a *Applier) Behind(ctx context.Context, owner client.Object) (bool, error) {
	return a.written.behind(ctx, owner)
}

// Generation is that of obj, which was read from the cache, or the later one that was written for owner and that the cache has not
// shown yet. What obj reports of itself is about its latest spec if it is about this generation.
func (a *Applier) Generation(owner, obj client.Object) int64 {
	of, known := a.written.keyOf(owner)
	key, knownToo := a.written.keyOf(obj)
	if !known || !knownToo {
		return obj.GetGeneration()
	}
	a.written.mu.Lock()
	defer a.written.mu.Unlock()
	if write := a.written.writesOf(of, owner.GetUID())[key]; write.uid == obj.GetUID() {
		return max(obj.GetGeneration(), write.generation)
	}
	return obj.GetGeneration()
}

// Wrote notes a write that a controller made by itself on behalf of owner (a pod it created, its own status), for
// Behind. obj is the server's answer.
func (a *Applier) Wrote(owner, obj client.Object) { a.written.wrote(owner, obj, false) }

// Changed is Wrote for an object that was read from the cache and changed.
func (a *Applier) Changed(owner, obj client.Object) { a.written.wrote(owner, obj, true) }

// Deleted notes a deletion that a controller made by itself on behalf of owner, for Behind.
func (a *Applier) Deleted(owner, obj client.Object) {
	if key, ok := a.written.keyOf(obj); ok {
		a.written.deleted(owner, obj, key.gvk)
	}
}

// Forget drops what was noted for an owner that is gone, of which only kind and name need to be known.
func (a *Applier) Forget(owner client.Object) {
	if key, ok := a.written.keyOf(owner); ok {
		a.written.owners.Remove(key)
	}
}

// keyOf returns the key of an object. A kind without a type cannot be read from the cache either.
func (w *written) keyOf(obj client.Object) (objectKey, bool) {
	gvk, err := apiutil.GVKForObject(obj, w.scheme)
	return objectKey{gvk, client.ObjectKeyFromObject(obj)}, err == nil
}

func (w *written) wrote(owner, obj client.Object, existed bool) {
	if key, ok := w.keyOf(obj); ok && obj.GetResourceVersion() != "" {
		w.note(owner, key, unseen{uid: obj.GetUID(), resourceVersion: obj.GetResourceVersion(), generation: obj.GetGeneration(), existed: existed})
	}
}

func (w *written) deleted(owner, obj client.Object, gvk schema.GroupVersionKind) {
	w.note(owner, objectKey{gvk, client.ObjectKeyFromObject(obj)}, unseen{uid: obj.GetUID()})
}

func (w *written) note(owner client.Object, key objectKey, write unseen) {
	of, ok := w.keyOf(owner)
	if !ok {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	writes := w.writesOf(of, owner.GetUID())
	if writes == nil {
		writes = map[objectKey]unseen{}
		w.owners.Add(of, unseenOf{owner.GetUID(), writes})
	}
	writes[key] = write
}

func (w *written) behind(ctx context.Context, owner client.Object) (bool, error) {
	of, ok := w.keyOf(owner)
	if !ok {
		return false, nil
	}
	w.mu.Lock()
	pending := maps.Clone(w.writesOf(of, owner.GetUID()))
	w.mu.Unlock()
	for key, write := range pending {
		// The owner as it was read is what counts, not what the cache has by now.
		seen, err := shows(owner, write), error(nil)
		if key != of {
			seen, err = w.seen(ctx, key, write)
		}
		if err != nil {
			return false, fmt.Errorf("comparing the cache with what was written: %w", err)
		}
		if !seen {
			return true, nil
		}
		w.forget(of, owner.GetUID(), key, write)
	}
	return false, nil
}

// shows reports whether an object is as it was written, or newer, or a different object.
func shows(obj client.Object, write unseen) bool {
	if write.resourceVersion == "" {
		return obj.GetUID() != write.uid || obj.GetDeletionTimestamp() != nil
	}
	order, err := resourceversion.CompareResourceVersion(obj.GetResourceVersion(), write.resourceVersion)
	return err != nil || order >= 0 // incomparable versions must not stop a reconciler for ever
}

// seen reports whether the cache shows the write or something newer.
func (w *written) seen(ctx context.Context, key objectKey, write unseen) (bool, error) {
	cached, err := w.get(ctx, w.cached, key)
	if err != nil {
		return false, err
	}
	switch {
	case cached != nil:
		return shows(cached, write), nil
	case write.existed, write.resourceVersion == "":
		return true, nil
	}
	// Not in the cache: not yet, or not any more, or it has lost the label that the cache selects by. Only in the first
	// case will an event come, and only then is the object on the server just as we wrote it.
	live, err := w.get(ctx, w.live, key)
	if err != nil {
		return false, err
	}
	return live == nil || live.GetResourceVersion() != write.resourceVersion, nil
}

func (w *written) get(ctx context.Context, from client.Reader, key objectKey) (client.Object, error) {
	var obj client.Object
	if typed, err := w.scheme.New(key.gvk); err == nil {
		obj, _ = typed.(client.Object)
	}
	if obj == nil {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(key.gvk)
		obj = u
	}
	err := from.Get(ctx, key.key, obj)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // absent is an answer, not an error
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", key.gvk.Kind, key.key, err)
	}
	return obj, nil
}

func (w *written) forget(of objectKey, owner types.UID, key objectKey, write unseen) {
	w.mu.Lock()
	defer w.mu.Unlock()
	writes := w.writesOf(of, owner)
	if writes[key] == write {
		delete(writes, key)
	}
	if len(writes) == 0 {
		w.owners.Remove(of)
	}
}

// writesOf returns the unseen writes of an owner; the caller holds the lock.
func (w *written) writesOf(of objectKey, owner types.UID) map[objectKey]unseen {
	value, _ := w.owners.Get(of)
	if u, ok := value.(unseenOf); ok && u.owner == owner {
		return u.writes
	}
	return nil
}

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
