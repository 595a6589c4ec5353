// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package hostcontroller

import (
	"context"

	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

// worker calls sync for each object of an informer that changed, one at a time.
type worker struct {
	name  string
	queue workqueue.TypedRateLimitingInterface[cache.ObjectName]
	sync  func(ctx context.Context, object cache.ObjectName) error
}

func newWorker(name string, informer cache.SharedIndexInformer, sync func(context.Context, cache.ObjectName) error) *worker {
	w := &worker{name: name, queue: workqueue.NewTypedRateLimitingQueue(retry()), sync: sync}
	add := func(object any) {
		if name, err := cache.DeletionHandlingObjectToName(object); err == nil {
			w.queue.Add(name)
		}
	}
	// The error is about an informer that has stopped, and this one has not started.
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    add,
		UpdateFunc: func(_, object any) { add(object) },
		DeleteFunc: add,
	})
	return w
}

func (w *worker) run(ctx context.Context) {
	go func() {
		<-ctx.Done()
		w.queue.ShutDown()
	}()
	for {
		object, shutdown := w.queue.Get()
		if shutdown {
			return
		}
		if err := w.sync(ctx, object); err != nil {
			klog.FromContext(ctx).Error(err, "Could not complete", "worker", w.name, "object", object)
			w.queue.AddRateLimited(object)
		} else {
			w.queue.Forget(object)
		}
		w.queue.Done(object)
	}
}
