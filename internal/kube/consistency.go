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

// ownersRemembered bounds for how many owners unseen writes are kept. Forgetting one costs the protection, not
// correctness: writes carry preconditions.
const ownersRemembered = 4096

// consistency answers whether the cache has caught up with what was written on behalf of an owner. A decision from an
// older view repeats what has been done: it creates a second pod for the one that is missing only in the cache. At rest
// it holds nothing and costs nothing.
//
// controller-runtime can make reads block until the cache has seen a write. That holds a worker of the queue, and does
// not cover objects that are applied as unstructured and read as typed ones; returning and being woken by the event does.
type consistency struct {
	cached client.Reader
	live   client.Reader
	scheme *runtime.Scheme

	mu     sync.Mutex
	owners *lru.Cache // of map[unseenKey]unseen by types.UID
}

type unseenKey struct {
	gvk schema.GroupVersionKind
	key client.ObjectKey
}

// unseen is a write that the cache has not shown yet.
type unseen struct {
	uid             types.UID
	resourceVersion string // of the object as written; empty when it was deleted
	// existed says that the cache had the object when it was written: if it has it no more, it is gone.
	existed bool
}

func newConsistency(cached, live client.Reader, scheme *runtime.Scheme) *consistency {
	return &consistency{cached: cached, live: live, scheme: scheme, owners: lru.New(ownersRemembered)}
}

// Behind says whether the cache still lacks something that was written for owner, or lacked it when owner was read from there.
// If so, the reconciler returns without deciding anything: the event that closes the gap wakes it, or has it come back when it
// arrived meanwhile.
func (a *Applier) Behind(ctx context.Context, owner client.Object) (bool, error) {
	return a.writes.behind(ctx, owner)
}

// Wrote notes a write that a controller made by itself on behalf of owner (a pod it created, its own status), for
// Behind. obj is the server's answer.
func (a *Applier) Wrote(owner, obj client.Object) { a.writes.wrote(owner, obj) }

// Changed is Wrote for an object that was read from the cache and changed.
func (a *Applier) Changed(owner, obj client.Object) { a.writes.changed(owner, obj) }

// Deleted notes a deletion that a controller made by itself on behalf of owner, for Behind.
func (a *Applier) Deleted(owner, obj client.Object) {
	if gvk, err := apiutil.GVKForObject(obj, a.scheme); err == nil {
		a.writes.deleted(owner, obj, gvk)
	}
}

func (c *consistency) wrote(owner, obj client.Object) { c.noteVersion(owner, obj, false) }

func (c *consistency) changed(owner, obj client.Object) { c.noteVersion(owner, obj, true) }

func (c *consistency) noteVersion(owner, obj client.Object, existed bool) {
	gvk, err := apiutil.GVKForObject(obj, c.scheme)
	if err != nil {
		return // a kind without a type cannot be read from the cache either
	}
	c.note(owner, unseenKey{gvk, client.ObjectKeyFromObject(obj)},
		unseen{uid: obj.GetUID(), resourceVersion: obj.GetResourceVersion(), existed: existed})
}

func (c *consistency) deleted(owner, obj client.Object, gvk schema.GroupVersionKind) {
	c.note(owner, unseenKey{gvk, client.ObjectKeyFromObject(obj)}, unseen{uid: obj.GetUID()})
}

func (c *consistency) note(owner client.Object, key unseenKey, write unseen) {
	c.mu.Lock()
	defer c.mu.Unlock()
	writes, ok := c.writesOf(owner.GetUID())
	if !ok {
		writes = map[unseenKey]unseen{}
		c.owners.Add(owner.GetUID(), writes)
	}
	writes[key] = write
}

func (c *consistency) behind(ctx context.Context, owner client.Object) (bool, error) {
	c.mu.Lock()
	writes, _ := c.writesOf(owner.GetUID())
	pending := maps.Clone(writes)
	c.mu.Unlock()
	for key, write := range pending {
		if write.uid == owner.GetUID() && !reached(owner, write) {
			return true, nil
		}
		seen, err := c.seen(ctx, key, write)
		if err != nil {
			return false, fmt.Errorf("comparing the cache with what was written: %w", err)
		}
		if !seen {
			return true, nil
		}
		c.forget(owner.GetUID(), key, write)
	}
	return false, nil
}

// reached says whether an object is as it was written, or newer.
func reached(obj client.Object, write unseen) bool {
	order, err := resourceversion.CompareResourceVersion(obj.GetResourceVersion(), write.resourceVersion)
	return err != nil || order >= 0 // incomparable versions must not stop a reconciler for ever
}

// seen says whether the cache shows the write or something newer.
func (c *consistency) seen(ctx context.Context, key unseenKey, write unseen) (bool, error) {
	cached, err := c.get(ctx, c.cached, key)
	if err != nil {
		return false, err
	}
	switch {
	case write.resourceVersion == "":
		return cached == nil || cached.GetUID() != write.uid || cached.GetDeletionTimestamp() != nil, nil
	case cached != nil:
		return reached(cached, write), nil
	case write.existed:
		return true, nil
	}
	// Not in the cache: not yet, or not any more, or it has lost the label that the cache selects by. Only in the first
	// case will an event come, and only then is the object on the server just as we wrote it.
	live, err := c.get(ctx, c.live, key)
	if err != nil {
		return false, err
	}
	return live == nil || live.GetResourceVersion() != write.resourceVersion, nil
}

func (c *consistency) get(ctx context.Context, from client.Reader, key unseenKey) (client.Object, error) {
	var obj client.Object
	if typed, err := c.scheme.New(key.gvk); err == nil {
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

func (c *consistency) forget(owner types.UID, key unseenKey, write unseen) {
	c.mu.Lock()
	defer c.mu.Unlock()
	writes, _ := c.writesOf(owner)
	if writes[key] == write {
		delete(writes, key)
	}
	if len(writes) == 0 {
		c.owners.Remove(owner)
	}
}

// writesOf returns the unseen writes of an owner; the caller holds the lock.
func (c *consistency) writesOf(owner types.UID) (map[unseenKey]unseen, bool) {
	value, _ := c.owners.Get(owner)
	writes, ok := value.(map[unseenKey]unseen)
	return writes, ok
}
