// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// rights returns the verbs of the operator's role by what they are about, as kubectl writes it: pods/status, deployments.apps.
func rights(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../config/rbac/role.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var role rbacv1.ClusterRole
	if err := yaml.UnmarshalStrict(text, &role); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, rule := range role.Rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				name := strings.TrimSuffix(resource+"."+group, ".")
				if _, twice := out[name]; twice {
					t.Fatalf("the role speaks of %s twice", name)
				}
				out[name] = strings.Join(slices.Sorted(slices.Values(rule.Verbs)), ", ")
			}
		}
	}
	return out
}

// told returns the rights in the table of security.md.
func told(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("administrators/security.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(text), "| rights on | verbs | why |\n|---|---|---|\n")
	if !ok {
		t.Fatal("security.md lacks the table of rights")
	}
	out := map[string]string{}
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			break
		}
		for name := range strings.SplitSeq(cells[1], ",") {
			out[strings.Trim(name, " `")] = strings.TrimSpace(cells[2])
		}
	}
	return out
}

func TestTheRightsInTheDocumentationAreThoseOfTheRole(t *testing.T) {
	have := rights(t)
	if diff := cmp.Diff(have, told(t)); diff != "" {
		t.Errorf("security.md does not tell what the operator may do (-role +page):\n%s", diff)
	}
	for name := range have {
		// Of RBAC only what is in a namespace, and nothing that gets around the API server's check: users cannot grant what they
		// may not do themselves.
		rbac := strings.HasSuffix(name, ".rbac.authorization.k8s.io") && name != "roles.rbac.authorization.k8s.io" && name != "rolebindings.rbac.authorization.k8s.io" ||
			strings.Contains(have[name], "escalate") || strings.Contains(have[name], "bind") || strings.Contains(have[name], "impersonate")
		if rbac || name == "pods/exec" || name == "nodes" && have[name] != "list, watch" {
			t.Errorf("security.md says that the operator may not do this: %s %s", have[name], name)
		}
	}
}
