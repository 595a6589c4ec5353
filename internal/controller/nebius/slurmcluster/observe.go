// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcluster

import (
	"context"
	"fmt"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/coxswain-hpc/coxswain/internal/kube"
)

// Seen is what the composed objects report of themselves.
type Seen struct {
	Controller, Accounting, RestAPI, LoginSet kube.Part
	// NodeSets are the workers, in the order of compose.Components.
	NodeSets []kube.Part
	// ReadyWorkers and ReadyLogin are numbers of pods.
	ReadyWorkers, ReadyLogin int32
}

// observe reads the composed objects from the cache.
func (r *reconciler) observe(ctx context.Context, _ *nebiusv1.SlurmCluster, _ facts, plan *plan, seen *Seen) (err error) {
	parts := &plan.composed.Components
	if seen.Controller, err = part(ctx, r.Client, parts.Controller.DeepCopy(), "Controller"); err != nil {
		return err
	}
	if seen.RestAPI, err = part(ctx, r.Client, parts.RestAPI.DeepCopy(), "RestApi"); err != nil {
		return err
	}
	if parts.Accounting != nil {
		if seen.Accounting, err = part(ctx, r.Client, parts.Accounting.DeepCopy(), "Accounting"); err != nil {
			return err
		}
	}
	login := parts.LoginSet.DeepCopy()
	if seen.LoginSet, err = part(ctx, r.Client, login, "LoginSet"); err != nil {
		return err
	}
	seen.ReadyLogin = login.Status.ReadyReplicas
	for _, set := range parts.NodeSets {
		live := set.DeepCopy()
		p, err := part(ctx, r.Client, live, "NodeSet")
		if err != nil {
			return err
		}
		seen.NodeSets = append(seen.NodeSets, p)
		seen.ReadyWorkers += live.Status.ReadyReplicas
	}
	return nil
}

// part reads a composed object into obj and says as a part how it is. The name of the part is how people find the object.
func part(ctx context.Context, c client.Reader, obj reconcile.Object, kind string) (kube.Part, error) {
	name := kind + " " + obj.GetName()
	if err := c.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
		if apierrors.IsNotFound(err) {
			return kube.Part{Name: name, Reason: kube.ReasonWaiting, Message: "is not created yet"}, nil
		}
		return kube.Part{}, fmt.Errorf("reading %s %s: %w", kind, client.ObjectKeyFromObject(obj), err)
	}
	return kube.PartOf(name, obj.GetGeneration(), obj.GetConditions()), nil
}
