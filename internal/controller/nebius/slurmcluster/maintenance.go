// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/compose"
)

// rest reads what decides the order in which the parts of a cluster stop and come back.
func (r *reconciler) rest(ctx context.Context, cluster *nebiusv1.SlurmCluster) (compose.ObservedRest, error) {
	var out compose.ObservedRest
	var err error
	if out.Controller, err = existing(ctx, r.Client, cluster, cluster.ControllerName(), &slinkyv1beta1.Controller{}); err != nil {
		return out, err
	}
	if out.Accounting, err = existing(ctx, r.Client, cluster, cluster.AccountingName(), &slinkyv1beta1.Accounting{}); err != nil {
		return out, err
	}
	if out.LoginSet, err = existing(ctx, r.Client, cluster, cluster.LoginSetName(), &slinkyv1beta1.LoginSet{}); err != nil {
		return out, err
	}
	if !cluster.Spec.Maintenance.Downscaled() {
		return out, nil
	}
	var pods corev1.PodList
	if err := r.Client.List(ctx, &pods, client.InNamespace(cluster.Namespace), client.UnsafeDisableDeepCopy,
		client.MatchingLabels{slinkyv1beta1.LabelCluster: cluster.ControllerName()}); err != nil {
		return out, fmt.Errorf("listing the workers of %s: %w", client.ObjectKeyFromObject(cluster), err)
	}
	for i := range pods.Items {
		if metav1.GetControllerOfNoCopy(&pods.Items[i]) != nil { // else no NodeSet owns it
			out.Workers++
		}
	}
	return out, nil
}

// existing reads a composed object into obj, and returns nil if there is none.
func existing[T client.Object](ctx context.Context, c client.Reader, cluster *nebiusv1.SlurmCluster, name string, obj T) (none T, err error) {
	key := types.NamespacedName{Namespace: cluster.Namespace, Name: name}
	switch err := c.Get(ctx, key, obj); {
	case apierrors.IsNotFound(err):
		return none, nil
	case err != nil:
		return none, fmt.Errorf("reading %T %s: %w", obj, key, err)
	}
	return obj, nil
}
