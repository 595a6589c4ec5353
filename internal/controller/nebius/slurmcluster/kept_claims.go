// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"
	"github.com/coxswain-hpc/coxswain/internal/render/label"
)

// ReasonClaimsKept is the reason of the event that names the claims which a deleted SlurmCluster leaves behind.
const ReasonClaimsKept = "PersistentVolumeClaimsKept"

// deletedCluster is a SlurmCluster that has been deleted.
type deletedCluster struct {
	namespace, name string
	uid             types.UID
}

// keptClaimsReporter reports which claims stay when a SlurmCluster has gone: the state of slurmctld, the database, disks of workers. It
// needs no finalizer, which would keep clusters from being deleted while the operator is away. If it is away at that moment, there is no
// report.
type keptClaimsReporter struct{ reconcile.Base }

func (r *keptClaimsReporter) setup(mgr ctrl.Manager) error {
	deleted := handler.TypedFuncs[*nebiusv1.SlurmCluster, deletedCluster]{
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*nebiusv1.SlurmCluster], q workqueue.TypedRateLimitingInterface[deletedCluster]) {
			q.Add(deletedCluster{namespace: e.Object.Namespace, name: e.Object.Name, uid: e.Object.UID})
		},
	}
	err := builder.TypedControllerManagedBy[deletedCluster](mgr).
		Named("SlurmClusterKeptClaims").
		WatchesRawSource(source.TypedKind(mgr.GetCache(), &nebiusv1.SlurmCluster{}, deleted)).
		Complete(ctrlreconcile.TypedFunc[deletedCluster](r.report))
	if err != nil {
		return fmt.Errorf("setting up the report of claims that SlurmClusters leave: %w", err)
	}
	return nil
}

// report names the claims in an event and in the log.
func (r *keptClaimsReporter) report(ctx context.Context, gone deletedCluster) (ctrl.Result, error) {
	var claims corev1.PersistentVolumeClaimList
	if err := r.Live.List(ctx, &claims, client.InNamespace(gone.namespace)); err != nil {
		return ctrl.Result{}, fmt.Errorf("listing the claims that SlurmCluster %s/%s leaves: %w", gone.namespace, gone.name, err)
	}
	names := keptClaims(claims.Items, gone.name)
	if len(names) == 0 {
		return ctrl.Result{}, nil
	}
	regarding := &nebiusv1.SlurmCluster{}
	regarding.SetGroupVersionKind(nebiusv1.GroupVersion.WithKind("SlurmCluster"))
	regarding.Namespace, regarding.Name = gone.namespace, gone.name
	regarding.UID = gone.uid
	list := strings.Join(names, ", ")
	if len(list) > 800 {
		list = list[:800] + " …"
	}
	r.Recorder.Eventf(regarding, nil, corev1.EventTypeWarning, ReasonClaimsKept, "Delete",
		"The data of the cluster is kept in %d PersistentVolumeClaims, for a new cluster of the same name; delete them when it is not needed: %s", len(names), list)
	log.FromContext(ctx).Info("Kept the claims of a deleted SlurmCluster", "cluster", gone.namespace+"/"+gone.name, "claims", names)
	return ctrl.Result{}, nil
}

// keptClaims returns the names of the claims of a cluster that nothing deletes, sorted.
func keptClaims(claims []corev1.PersistentVolumeClaim, cluster string) []string {
	var names []string
	for i := range claims {
		claim := &claims[i]
		own := claim.Labels[slinkyv1beta1.LabelCluster] == cluster
		switch claim.Labels[label.Name] {
		case slinkyv1beta1.NameSlurmctld, slinkyv1beta1.NameMariaDB:
			own = own || claim.Labels[label.Instance] == cluster
		}
		if own && claim.DeletionTimestamp == nil && len(claim.OwnerReferences) == 0 {
			names = append(names, claim.Name)
		}
	}
	slices.Sort(names)
	return names
}
