// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/observe/tracing"
	"github.com/coxswain-hpc/coxswain/internal/reconcile/reference"
	"github.com/coxswain-hpc/coxswain/internal/render/image"
)

// Objects that a component makes delay its end in a foreground deletion. Where the API server enforces rights on
// that (admission plugin OwnerReferencesPermissionEnforcement, as on OpenShift), it takes the right to the owner's finalizers.
//
// +kubebuilder:rbac:groups=slinky.slurm.net,resources=accountings/finalizers;controllers/finalizers;loginsets/finalizers;nodesets/finalizers;restapis/finalizers;tokens/finalizers,verbs=update

// There, too, a client that changes the owners of an object must be allowed to delete it: NodeSets share a budget.
//
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=delete

// Base is what every reconciler works with.
type Base struct {
	// Reader reads what specs refer to, and has the client.
	reference.Reader
	Applier  *kube.Applier
	Recorder events.EventRecorder
	Clock    clock.PassiveClock
	// Images are used where an object names none.
	Images image.Set
	// ClusterDomain is the DNS domain of the Kubernetes cluster.
	ClusterDomain string
	// Concurrency is the number of objects of the kind that are reconciled at once.
	Concurrency int
	// Process distinguishes this process of the operator from all others, which may believe to lead as well.
	Process string
	// Traces makes spans of passes; nil makes none.
	Traces *tracing.Tracing
}

// Traced is the reconciler of a controller about objects of a kind, with a span for each pass where traces are on.
func (b *Base) Traced(controller string, object client.Object, r ctrlreconcile.Reconciler) ctrlreconcile.Reconciler {
	return b.Traces.Reconciler(controller, object, b.Client, r)
}
