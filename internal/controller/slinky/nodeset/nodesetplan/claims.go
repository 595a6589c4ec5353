// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodesetplan

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// Holders are those by whom a claim may be owned, so that it is deleted with them: docs/contributors/predecessors/slinky-workers.md#claims.
type Holders struct {
	// Set is the NodeSet, Pod the worker that uses the claim; nil when there is none.
	Set metav1.OwnerReference
	Pod *metav1.OwnerReference
	// ScaledIn reports whether the worker goes because there are too many.
	ScaledIn bool
	// WhenDeleted and WhenScaled are the policy.
	WhenDeleted, WhenScaled slinkyv1beta1.ClaimRetention
}

// Own returns the owners that a claim is to have, and whether these are others than now. A claim is foreign and left alone when it belongs
// to somebody else, or to an earlier NodeSet or pod of the same name and so is about to go.
func (h Holders) Own(now []metav1.OwnerReference) (owners []metav1.OwnerReference, change, foreign bool) {
	mine := func(r metav1.OwnerReference) bool {
		return r.UID == h.Set.UID || h.Pod != nil && r.UID == h.Pod.UID
	}
	for _, r := range now {
		if mine(r) {
			continue
		}
		if r.Controller != nil && *r.Controller || r.Kind == h.Set.Kind && r.Name == h.Set.Name || r.Kind == "Pod" {
			return now, false, true
		}
		owners = append(owners, r)
	}
	goes := h.WhenScaled == slinkyv1beta1.ClaimDelete && h.ScaledIn && h.Pod != nil
	switch {
	case goes:
		owners = append(owners, *h.Pod)
	case h.WhenDeleted == slinkyv1beta1.ClaimDelete:
		owners = append(owners, h.Set)
	}
	same := len(owners) == len(now) && !slices.ContainsFunc(owners, func(r metav1.OwnerReference) bool {
		return !slices.ContainsFunc(now, func(have metav1.OwnerReference) bool { return have.UID == r.UID })
	})
	return owners, !same, false
}

// ScaledIn returns the pods that go because there are too many, once the plan is carried out.
func (p Plan) ScaledIn(pods []workerpod.Pod) map[string]bool {
	out := map[string]bool{}
	for name, cause := range p.Causes(pods) {
		out[name] = cause == workerpod.ScaleIn
	}
	return out
}

// Sparing returns the plan without the ends of some pods.
func (p Plan) Sparing(stay map[string]bool) Plan {
	if len(stay) == 0 {
		return p
	}
	p.Delete = slices.DeleteFunc(slices.Clone(p.Delete), func(name string) bool { return stay[name] })
	p.PowerDown = slices.DeleteFunc(slices.Clone(p.PowerDown), func(name string) bool { return stay[name] })
	p.Retire = slices.DeleteFunc(slices.Clone(p.Retire), func(r Retirement) bool { return stay[r.Pod] })
	return p
}
