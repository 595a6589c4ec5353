// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// FieldManager is the name under which Coxswain owns fields (server-side apply).
const FieldManager = "coxswain"

// Applier writes desired objects. One serves all controllers of a process; it is safe for concurrent use.
type Applier struct {
	client  client.Client
	live    client.Reader
	scheme  *runtime.Scheme
	memory  memory
	written *written
}

// NewApplier returns an Applier. cached reads from the manager's cache and writes to the server; live reads from the
// server (mgr.GetAPIReader()) and is asked only about objects that the cache does not hold. Desired objects given as
// unstructured are compared with the cache only if the client was made with client.CacheOptions.Unstructured.
func NewApplier(cached client.Client, live client.Reader) *Applier {
	return &Applier{
		client: cached, live: live, scheme: cached.Scheme(),
		memory: newMemory(), written: newWritten(cached, live, cached.Scheme()),
	}
}

// A Pending is what has to be written so that objects exist in a form. It writes once, soon after Applier.Examine made it.
type Pending struct {
	applier  *Applier
	owner    client.Object
	steps    []step
	failures []error
}

// A step is what has to be done about one object.
type step struct {
	change Change
	done   bool // nothing is to be sent
	want   intent
	live   client.Object  // nil: there is none
	fields map[string]any // of live
	opts   options
	// refused is the error with which the server would refuse the intent; then live is made anew.
	refused *ImmutableError
}

// Examine finds out what differs between the desired objects and the live ones: changes that others made to our fields are corrected,
// what they added stays. Objects are plain typed values (metadata and spec; status is ignored) in the owner's namespace; Recreate and
// Shared mark choices for one.
//
// When one of them cannot be written, since somebody else has it or Kubernetes does not allow the change, there is an error and nothing
// to write: half of a change may be worse than none. The error joins all failures; *ConflictError and *ImmutableError are among them,
// and problem.FromError separates those from what is worth retrying.
func (a *Applier) Examine(ctx context.Context, owner client.Object, desired ...client.Object) (*Pending, error) {
	p := &Pending{applier: a, owner: owner, steps: make([]step, 0, len(desired))}
	refused := false
	for _, obj := range desired {
		s, err := a.examine(ctx, owner, obj)
		if err != nil {
			_, conflict := errors.AsType[*ConflictError](err)
			_, immutable := errors.AsType[*ImmutableError](err)
			refused = refused || conflict || immutable
			p.failures = append(p.failures, err)
			continue
		}
		p.steps = append(p.steps, s)
	}
	if refused {
		return nil, errors.Join(p.failures...)
	}
	return p, nil
}

// Apply sends what differs. One object that fails does not stop the others. The error joins all failures, as that of Examine does.
func (p *Pending) Apply(ctx context.Context) (Result, error) {
	var result Result
	failures := p.failures
	for _, s := range p.steps {
		change, err := p.applier.carryOut(ctx, p.owner, s)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		result.Changes = append(result.Changes, change)
	}
	return result, errors.Join(failures...)
}

func (a *Applier) examine(ctx context.Context, owner, desired client.Object) (step, error) {
	desired, opts := unwrap(desired)
	want, err := newIntent(a.scheme, owner, desired, opts)
	if err != nil {
		return step{}, err
	}
	live, err := a.read(ctx, desired)
	if err != nil {
		return step{}, fmt.Errorf("reading %s: %w", want.ref(), err)
	}
	s := step{change: Change{Action: Updated, Object: want.ref()}, want: want, live: live, opts: opts}
	if live == nil {
		return s, nil
	}
	switch standingOf(owner, want, live) {
	case leaving:
		s.change.Action, s.done = Waiting, true
		return s, nil
	case foreign:
		return step{}, &ConflictError{Object: want.ref(), Owner: refOf(a.scheme, owner), Holder: holderOf(live)}
	case adoptable:
		s.change.Action = Adopted
	case ours:
	}
	if a.memory.holds(live.GetUID(), live.GetResourceVersion(), want.standing) {
		s.change.Action, s.done = Unchanged, true
		return s, nil
	}
	if s.fields, err = fields(live); err != nil {
		return step{}, fmt.Errorf("encoding %s: %w", want.ref(), err)
	}
	// Typed objects read from the server, not from the cache, have no kind and version.
	s.fields["apiVersion"], s.fields["kind"] = want.object.GetAPIVersion(), want.object.GetKind()
	s.change.Path = difference(want.gvk.GroupKind(), want.object.Object, s.fields)
	if s.change.Path == "" && live.GetAnnotations()[IntentAnnotation] == want.digest {
		a.memory.settle(live.GetUID(), live.GetResourceVersion(), want.standing)
		s.change.Action, s.done, s.fields = Unchanged, true, nil
		return s, nil
	}
	if s.refused = immutableChange(want, s.fields); s.refused != nil && !mayRecreate(live, opts) {
		return step{}, s.refused
	}
	return s, nil
}

func (a *Applier) carryOut(ctx context.Context, owner client.Object, s step) (Change, error) {
	switch {
	case s.done:
		return s.change, nil
	case s.live == nil:
		return a.create(ctx, owner, s.want)
	}
	return a.change(ctx, owner, s)
}

// read returns the object from the cache, or from the server when the cache does not hold it: it may be new, or lack the
// label that the cache selects by. It returns nil when there is none.
func (a *Applier) read(ctx context.Context, desired client.Object) (client.Object, error) {
	key := client.ObjectKeyFromObject(desired)
	live := newOf(desired)
	err := a.client.Get(ctx, key, live)
	if apierrors.IsNotFound(err) {
		err = a.live.Get(ctx, key, live)
	}
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // absent is an answer, not an error
	}
	return live, err
}

func (a *Applier) create(ctx context.Context, owner client.Object, want intent) (Change, error) {
	// Not forced: should somebody make an object of this name right now, theirs is not overwritten.
	if err := a.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(want.object), client.FieldOwner(FieldManager)); err != nil {
		return Change{}, fmt.Errorf("creating %s: %w", want.ref(), asRefusal(want, err))
	}
	a.memory.settle(want.object.GetUID(), want.object.GetResourceVersion(), want.standing)
	a.written.wrote(owner, want.object, false)
	return Change{Action: Created, Object: want.ref()}, nil
}

// change applies the intent to an existing object, or recreates it where the server refuses or would.
func (a *Applier) change(ctx context.Context, owner client.Object, s step) (Change, error) {
	want, live, change := s.want, s.live, s.change
	if s.refused != nil {
		return a.recreate(ctx, owner, s, s.refused.Path)
	}
	err := a.replaceForeign(ctx, want, live, s.fields)
	if err == nil {
		err = asRefusal(want, a.update(ctx, owner, want, live, s.opts))
	}
	if refused, ok := errors.AsType[*ImmutableError](err); ok {
		if !mayRecreate(live, s.opts) {
			return Change{}, refused
		}
		return a.recreate(ctx, owner, s, refused.Path)
	}
	if err != nil {
		return Change{}, fmt.Errorf("updating %s: %w", want.ref(), err)
	}
	if want.object.GetResourceVersion() != live.GetResourceVersion() {
		return change, nil
	}
	if a.memory.report(live.GetUID()) {
		log.FromContext(ctx).Info("The server stores an object differently from what was applied; it is applied again only when the object changes",
			"object", want.ref().String(), "field", change.Path)
	}
	return Change{Action: Unchanged, Object: want.ref()}, nil
}

// update sends the intent. The UID makes sure that the object which was compared is the object that is changed: the
// server neither changes another one of that name nor brings back one that is gone.
func (a *Applier) update(ctx context.Context, owner client.Object, want intent, live client.Object, opts options) error {
	if opts.shared {
		keepSharers(want, live)
	}
	want.object.SetUID(live.GetUID())
	err := a.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(want.object), client.FieldOwner(FieldManager), client.ForceOwnership)
	if err != nil {
		return err
	}
	a.memory.settle(live.GetUID(), want.object.GetResourceVersion(), want.standing)
	if want.object.GetResourceVersion() != live.GetResourceVersion() {
		a.written.wrote(owner, want.object, false)
	}
	return nil
}

// recreate deletes the live object, which cannot be changed at path, and makes it anew, at once if it is gone at once. Otherwise its
// finalizers have to finish first; the event of its end wakes the owner's reconciler, which finds it missing and creates it.
func (a *Applier) recreate(ctx context.Context, owner client.Object, s step, path string) (Change, error) {
	want, live, uid := s.want, s.live, s.live.GetUID()
	err := a.client.Delete(ctx, live, client.Preconditions{UID: &uid}, client.PropagationPolicy(recreatePropagation(want.gvk)))
	if client.IgnoreNotFound(err) != nil {
		return Change{}, fmt.Errorf("deleting %s to make it anew: %w", want.ref(), err)
	}
	a.written.deleted(owner, live, want.gvk)
	change := Change{Action: Recreated, Object: want.ref(), Path: path}
	err = a.live.Get(ctx, client.ObjectKeyFromObject(live), newOf(live))
	if err == nil {
		return change, nil
	}
	if !apierrors.IsNotFound(err) {
		return Change{}, fmt.Errorf("reading %s after deleting it: %w", want.ref(), err)
	}
	want.object.SetUID("")
	if _, err := a.create(ctx, owner, want); err != nil {
		return Change{}, err
	}
	return change, nil
}
