// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package mutants

// admitted are bugs about what users and others write.
func admitted() []mutation {
	return []mutation{
		{
			name: "an emptyDir that somebody changed by hand stays as it is",
			edits: []edit{{
				"internal/kube/subset.go",
				`c.exact && live == nil && len(desired) == 0 && path != "" || isAtomicMap(field) && len(desired) != len(live) || c.foreign(field, desired, live)`,
				`isAtomicMap(field) && len(desired) != len(live)`,
			}},
			suite:  "internal/kube",
			caught: "TestWhatOthersPutInPlaceOfOursIsSetRight",
		},
		{
			name:   "an empty list of a chart removes the tolerations of workers",
			edits:  []edit{{"api/embedded/decode.go", `clean(fields, reflect.TypeFor[T](), reflect.ValueOf(value).Elem())`, ``}},
			suite:  "internal/render/overlay",
			caught: "TestListsOfUsersAreAddedToTheGeneratedOnes",
		},
		{
			name:   "a NodeSet is taken whose workers would have names of another one",
			edits:  []edit{{"internal/webhook/validation/namesakes.go", `other.Name != n.Name &&`, `other.Name == n.Name &&`}},
			suite:  "internal/webhook",
			caught: "TestMistakesAreRefusedWithTheWayOut",
		},
		{
			name:   "two NodeSets may each have a worker of the name of one Kubernetes node",
			edits:  []edit{{"internal/controller/slinky/nodeset/nodesetplan/names.go", `names = append(names, node.Hostname)`, `names = append(names, n.Name+node.Hostname)`}},
			suite:  "internal/webhook",
			caught: "TestWorkersOfOneKubernetesNodeHaveOneNameInSlurm",
		},
	}
}
