// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodesetplan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/controller/slinky/nodeset/nodesetplan"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

func TestWhoOwnsAClaim(t *testing.T) {
	const keep, drop = slinkyv1beta1.ClaimRetain, slinkyv1beta1.ClaimDelete
	set := metav1.OwnerReference{Kind: "NodeSet", Name: "w", UID: "set"}
	pod := metav1.OwnerReference{Kind: "Pod", Name: "w-0", UID: "pod"}
	stranger := metav1.OwnerReference{Kind: "Backup", Name: "b", UID: "b"}
	controller := metav1.OwnerReference{Kind: "Database", Name: "d", UID: "d", Controller: new(true)}
	earlier := metav1.OwnerReference{Kind: "NodeSet", Name: "w", UID: "before"}
	dead := metav1.OwnerReference{Kind: "Pod", Name: "w-0", UID: "before"}
	type refs = []metav1.OwnerReference
	tests := []struct {
		name                    string
		whenDeleted, whenScaled slinkyv1beta1.ClaimRetention
		scaledIn, noPod         bool
		now, want               refs
		foreign                 bool
	}{
		{"a claim that is kept in any case belongs to nobody", keep, keep, true, false, nil, nil, false},
		{"a claim goes with the NodeSet", drop, keep, true, false, nil, refs{set}, false},
		{"a claim stays while its worker does", keep, drop, false, false, nil, nil, false},
		{"a claim goes with a worker that is too many", keep, drop, true, false, nil, refs{pod}, false},
		{"a claim goes with the NodeSet while its worker stays", drop, drop, false, false, refs{pod}, refs{set}, false},
		{"a claim goes with whichever goes first", drop, drop, true, false, refs{set}, refs{pod}, false},
		{"an unretirement takes the claim back", keep, drop, false, false, refs{pod}, nil, false},
		{"another policy takes the claim back", keep, keep, true, false, refs{set, stranger}, refs{stranger}, false},
		{"without a worker only the NodeSet counts", drop, drop, true, true, nil, refs{set}, false},
		{"somebody else's claim is left alone", drop, drop, true, false, refs{controller}, refs{controller}, true},
		{"a claim of an earlier NodeSet is about to go", drop, keep, false, false, refs{earlier}, refs{earlier}, true},
		{"a claim of an earlier pod is about to go", keep, keep, false, false, refs{dead}, refs{dead}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := nodesetplan.Holders{Set: set, Pod: &pod, ScaledIn: tt.scaledIn, WhenDeleted: tt.whenDeleted, WhenScaled: tt.whenScaled}
			if tt.noPod {
				h.Pod = nil
			}
			got, change, foreign := h.Own(tt.now)
			if diff := cmp.Diff(tt.want, got); diff != "" || foreign != tt.foreign || change != (!cmp.Equal(tt.now, tt.want)) {
				t.Errorf("change %t, foreign %t: %s", change, foreign, diff)
			}
			if _, again, _ := h.Own(got); again {
				t.Error("it changes again")
			}
		})
	}
}

func TestWhoIsScaledIn(t *testing.T) {
	pods := []workerpod.Pod{aPod(0), aPod(1, scaledIn), aPod(2, scaledIn), aPod(3, scaledIn), aPod(4, updating)}
	plan := nodesetplan.Plan{
		Unretire: []string{"w-2"},
		Retire:   append(retire(workerpod.ScaleIn, "w-0"), retire(workerpod.Update, "w-3")...),
	}
	want := map[string]bool{"w-0": true, "w-1": true, "w-3": false, "w-4": false}
	if diff := cmp.Diff(want, plan.ScaledIn(pods)); diff != "" {
		t.Error(diff)
	}
}
