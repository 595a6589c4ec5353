// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcluster

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/compose"
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
func (r *reconciler) observe(ctx context.Context, parts *compose.Components) (Seen, error) {
	var out Seen
	var err error
	if out.Controller, err = part(ctx, r.Client, parts.Controller.DeepCopy(), "Controller"); err != nil {
		return out, err
	}
	if out.RestAPI, err = part(ctx, r.Client, parts.RestAPI.DeepCopy(), "RestApi"); err != nil {
		return out, err
	}
	if parts.Accounting != nil {
		if out.Accounting, err = part(ctx, r.Client, parts.Accounting.DeepCopy(), "Accounting"); err != nil {
			return out, err
		}
	}
	login := parts.LoginSet.DeepCopy()
	if out.LoginSet, err = part(ctx, r.Client, login, "LoginSet"); err != nil {
		return out, err
	}
	out.ReadyLogin = login.Status.ReadyReplicas
	for _, set := range parts.NodeSets {
		live := set.DeepCopy()
		p, err := part(ctx, r.Client, live, "NodeSet")
		if err != nil {
			return out, err
		}
		out.NodeSets = append(out.NodeSets, p)
		out.ReadyWorkers += live.Status.ReadyReplicas
	}
	return out, nil
}

// reporter is a component object.
type reporter interface {
	client.Object
	GetConditions() []metav1.Condition
}

var _ = []reporter{&slinkyv1beta1.Controller{}, &slinkyv1beta1.NodeSet{}}

// part reads a composed object into obj and says as a part how it is. The name of the part is how people find the object.
func part(ctx context.Context, c client.Reader, obj reporter, kind string) (kube.Part, error) {
	name := kind + " " + obj.GetName()
	if err := c.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
		if apierrors.IsNotFound(err) {
			return kube.Part{Name: name, Reason: kube.ReasonWaiting, Message: "is not created yet"}, nil
		}
		return kube.Part{}, fmt.Errorf("reading %s %s: %w", kind, client.ObjectKeyFromObject(obj), err)
	}
	return kube.PartOf(name, obj.GetGeneration(), obj.GetConditions()), nil
}
