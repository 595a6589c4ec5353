// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcluster

import (
	"context"
	"fmt"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/coxswain-hpc/coxswain/internal/kube"
)

// Seen is what the composed objects report.
type Seen struct {
	Controller, Accounting, RestAPI, LoginSet, SConfigController, Exporter kube.Part
	// EditWaits is the condition of the Controller; nil when it has none.
	EditWaits *metav1.Condition
	// NodeSets are the workers, in the order of compose.Components.
	NodeSets []kube.Part
	// Database are the objects of the mariadb-operator, if there are any.
	Database []kube.Part
	// ReadyWorkers, ReadyLogin and ReadySConfigController are numbers of pods.
	ReadyWorkers, ReadyLogin, ReadySConfigController int32
}

// observe reads the composed objects from the cache.
func (r *reconciler) observe(ctx context.Context, cluster *nebiusv1.SlurmCluster, _ facts, plan *plan, seen *Seen) (err error) {
	parts := &plan.composed.Components
	slurmctld := parts.Controller.DeepCopy()
	if seen.Controller, err = r.part(ctx, cluster, slurmctld, "Controller"); err != nil {
		return err
	}
	seen.EditWaits = meta.FindStatusCondition(slurmctld.Status.Conditions, slinkyv1beta1.ConditionEditWaits)
	if seen.RestAPI, err = r.part(ctx, cluster, parts.RestAPI.DeepCopy(), "RestApi"); err != nil {
		return err
	}
	if parts.Accounting != nil {
		if seen.Accounting, err = r.part(ctx, cluster, parts.Accounting.DeepCopy(), "Accounting"); err != nil {
			return err
		}
	}
	if seen.Database, err = database(ctx, r.Live, parts.MariaDB, parts.Grant); err != nil {
		return err
	}
	login := parts.LoginSet.DeepCopy()
	if seen.LoginSet, err = r.part(ctx, cluster, login, "LoginSet"); err != nil {
		return err
	}
	seen.ReadyLogin = login.Status.ReadyReplicas
	for _, set := range parts.NodeSets {
		live := set.DeepCopy()
		p, err := r.part(ctx, cluster, live, "NodeSet")
		if err != nil {
			return err
		}
		seen.NodeSets = append(seen.NodeSets, p)
		seen.ReadyWorkers += live.Status.ReadyReplicas
	}
	if writer := parts.SConfigController; writer != nil {
		var workload reconcile.Workload
		seen.SConfigController, workload, err = r.ObserveWorkload(ctx, writer.Namespace, writer.Name, &appsv1.Deployment{}, "Deployment "+writer.Name, *writer.Spec.Replicas)
		seen.ReadySConfigController = workload.Ready
	}
	if exporter := parts.Exporter; exporter != nil && err == nil {
		seen.Exporter, _, err = r.ObserveWorkload(ctx, exporter.Namespace, exporter.Name, &appsv1.Deployment{}, "Deployment "+exporter.Name, *exporter.Spec.Replicas)
	}
	return err
}

// database reads from the server what the mariadb-operator reports of its objects.
func database(ctx context.Context, c client.Reader, objects ...*unstructured.Unstructured) (out []kube.Part, err error) {
	for _, composed := range objects {
		if composed == nil {
			continue
		}
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(composed.GroupVersionKind())
		p := kube.Part{Name: composed.GetKind() + " " + composed.GetName(), Reason: kube.ReasonWaiting, Message: "the mariadb-operator has not reported on it yet"}
		if err := c.Get(ctx, client.ObjectKeyFromObject(composed), live); client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("reading %s: %w", p.Name, err)
		}
		conditions, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
		for _, item := range conditions {
			if condition, _ := item.(map[string]any); condition["type"] == kube.ConditionReady {
				p.Ready = condition["status"] == string(metav1.ConditionTrue)
				p.Message, _ = condition["message"].(string)
			}
		}
		out = append(out, p)
	}
	return out, nil
}

// part reads a composed object into obj and returns its readiness as a part. The name of the part is how people find the object.
func (r *reconciler) part(ctx context.Context, cluster *nebiusv1.SlurmCluster, obj reconcile.Object, kind string) (kube.Part, error) {
	name := kind + " " + obj.GetName()
	if err := r.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
		if apierrors.IsNotFound(err) {
			return kube.Part{Name: name, Reason: kube.ReasonWaiting, Message: "is not created yet"}, nil
		}
		return kube.Part{}, fmt.Errorf("reading %s %s: %w", kind, client.ObjectKeyFromObject(obj), err)
	}
	// The cache may lack what this very pass has applied.
	return kube.PartOf(name, r.Applier.Generation(cluster, obj), obj.GetConditions()), nil
}
