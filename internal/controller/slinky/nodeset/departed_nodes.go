// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/controller/slinky/nodeset/nodesetplan"
	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
	"github.com/coxswain-hpc/coxswain/internal/slurm/link"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// deleteDepartedNodes deletes the records of the workers of a NodeSet that goes, as far as nothing needs them. The NodeSet does not wait
// for records: those that Slurm does not list, or refuses to delete, stay there. again is set only while another NodeSet asks Slurm.
func (r *reconciler) deleteDepartedNodes(ctx context.Context, n *slinkyv1beta1.NodeSet) (again time.Time, err error) {
	l, ok := r.linkOf(n)
	if !ok || l.Snapshot().Trust != link.Fresh || workerpod.DryRun(n) {
		return again, nil
	}
	names, err := r.departedNodes(ctx, n, l.Snapshot())
	if err != nil || len(names) == 0 {
		return again, err
	}
	var deleted []string
	again, failure := r.callSlurm(ctx, n, func(ctx context.Context) error {
		confirmed, err := l.Confirm(ctx, names...) // an administrator may have changed the node since
		if err != nil {
			return err
		}
		if names, err = r.departedNodes(ctx, n, confirmed); err != nil || len(names) == 0 {
			return err
		}
		unnamed, err := l.Unnamed(ctx, names)
		if err != nil || len(unnamed) == 0 {
			return err
		}
		failures := l.Forget(ctx, unnamed)
		deleted = slices.DeleteFunc(unnamed, func(name string) bool { return failures[name] != nil })
		return failures.Err()
	})
	if len(deleted) > 0 {
		names := hostlist.Compress(deleted)
		log.FromContext(ctx).Info("Deleted records of Slurm nodes whose NodeSet goes", "nodes", names)
		r.Recorder.Eventf(n, nil, corev1.EventTypeNormal, "DefunctSlurmNodePruned", "Prune", "Deleted the records of Slurm nodes %s, because their NodeSet is being deleted", names)
	}
	if failure != nil {
		log.FromContext(ctx).Info("Left records of Slurm nodes whose NodeSet goes", "why", failure.Error())
	}
	return again, nil
}

// departedNodes returns the names of the records of a NodeSet that goes and that nothing needs, according to a snapshot.
func (r *reconciler) departedNodes(ctx context.Context, n *slinkyv1beta1.NodeSet, snapshot *link.Snapshot) ([]string, error) {
	var failure error
	names := nodesetplan.DepartedNodesToDelete(recordsOf(snapshot, n, nil), n.Name, string(n.UID), func(name string) bool {
		there, err := r.podExists(ctx, types.NamespacedName{Namespace: n.Namespace, Name: name})
		failure = errors.Join(failure, err)
		return there
	})
	return names, failure
}
