// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package validation finds mistakes in objects as users write them, for the webhook and for "kubectl slurm lint". The pure code that the
// controllers use (internal/render, internal/compose) decides what a mistake is.
//
// What one object shows by itself is refused by rules in its CRD. Here is what needs a parser or a look at other objects. A
// reference to what does not exist yet is a warning, never a mistake: manifests come in any order.
package validation

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/render"
)

// Findings are what a look at one object brings up: mistakes refuse it, warnings go along with the answer.
type Findings struct {
	Mistakes problem.List
	Warnings []string
}

// Find looks at an object as the operator reads it, without what is empty in it, and at what live has beside it. The object stays as it
// is. The error is what did not answer, not what is wrong with the object. A kind that nobody looks at has no findings. release is
// that of the Slurm that is to read slurm.conf, when that is certain; else it is empty.
func Find(ctx context.Context, live client.Reader, obj client.Object, release string) (Findings, error) {
	if read, ok := obj.DeepCopyObject().(client.Object); ok {
		obj = read
	}
	if o, ok := obj.(interface{ DropEmpty() }); ok {
		o.DropEmpty()
	}
	look := newLookup(ctx, live, obj.GetNamespace(), release)
	switch o := obj.(type) {
	case *slinkyv1beta1.Controller:
		return look.controller(ctx, o)
	case *slinkyv1beta1.NodeSet:
		return look.nodeSet(ctx, o)
	case *slinkyv1beta1.LoginSet:
		return look.loginSet(ctx, o)
	case *slinkyv1beta1.Accounting:
		return look.accounting(ctx, o)
	case *slinkyv1beta1.RestApi:
		return look.restAPI(ctx, o)
	case *slinkyv1beta1.Token:
		return look.token(ctx, o)
	case *nebiusv1.SlurmCluster:
		return look.slurmCluster(ctx, o)
	case *nebiusv1alpha1.NodeSet:
		return look.nebiusNodeSet(ctx, o)
	case *nebiusv1alpha1.NodeConfigurator:
		return look.nodeConfigurator(ctx, o)
	case *nebiusv1alpha1.ActiveCheck:
		return look.activeCheck(ctx, o)
	}
	return Findings{}, nil
}

// add takes the problems of a rendering. One that heals by itself is a warning, and so is a field without effect.
func (f *Findings) add(out render.Output) {
	f.problems(out.Problems)
	for _, path := range out.Ignored {
		f.Warnings = append(f.Warnings, path+" has no effect in this version")
	}
}

func (f *Findings) problems(list problem.List) {
	for _, p := range list {
		if p.Waiting {
			f.Warnings = append(f.Warnings, p.Error())
		} else {
			f.Mistakes = append(f.Mistakes, p)
		}
	}
}
