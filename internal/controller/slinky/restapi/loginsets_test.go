// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package restapi

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/event"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/manifest"
)

func TestWhichLoginSetsWakeSlurmrestd(t *testing.T) {
	parse := func(text string) *slinkyv1beta1.LoginSet { return manifest.Parse[slinkyv1beta1.LoginSet](t, text) }
	none, one := parse(`{metadata: {uid: a}}`), parse(`{metadata: {uid: a}, spec: {users: [{name: alice, uid: 2000}]}}`)
	two := parse(`{metadata: {uid: a}, spec: {users: [{name: alice, uid: 2000}, {name: bob, uid: 2001}]}}`)
	other := parse(`{metadata: {uid: b}, spec: {users: [{name: alice, uid: 2000}]}}`)
	update := func(before, after *slinkyv1beta1.LoginSet) bool {
		return listsChange().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})
	}
	for _, tt := range []struct {
		name      string
		got, want bool
	}{
		{"a LoginSet with users comes", listsChange().Create(event.CreateEvent{Object: one}), true},
		{"a LoginSet without users comes", listsChange().Create(event.CreateEvent{Object: none}), false},
		{"a LoginSet with users goes", listsChange().Delete(event.DeleteEvent{Object: one}), true},
		{"a LoginSet without users goes", listsChange().Delete(event.DeleteEvent{Object: none}), false},
		{"the first user comes", update(none, one), true},
		{"the last user goes", update(one, none), true},
		{"a second user comes", update(one, two), false},
		{"nothing is about users", update(none, none), false},
		{"another LoginSet has its name", update(one, other), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.got != tt.want {
				t.Errorf("slurmrestd is looked at: %t, want %t", tt.got, tt.want)
			}
		})
	}
}
