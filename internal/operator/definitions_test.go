// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/coxswain-hpc/coxswain/internal/controller/nebius/slurmcluster"
	"github.com/coxswain-hpc/coxswain/internal/controller/slinky/controller"
)

// The caches do not fill, and nothing starts, as long as the operator may not watch one of these.
func TestTheOperatorMayWatchTheDefinitionsThatItLooksFor(t *testing.T) {
	text, err := os.ReadFile("../../config/rbac/role.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var role rbacv1.ClusterRole
	if err := yaml.UnmarshalStrict(text, &role); err != nil {
		t.Fatal(err)
	}
	var may []string
	for _, rule := range role.Rules {
		if slices.Contains(rule.Resources, "customresourcedefinitions") && slices.Contains(rule.Verbs, "watch") {
			may = append(may, rule.ResourceNames...)
		}
	}
	var looks []string
	for _, kind := range slices.Concat(controller.Definitions(), slurmcluster.Definitions()) {
		looks = append(looks, kind.Definition)
	}
	slices.Sort(looks)
	slices.Sort(may)
	if diff := cmp.Diff(slices.Compact(looks), may); diff != "" {
		t.Error(diff)
	}
}
