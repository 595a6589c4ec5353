// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package mutants

// refusals are bugs of what is done when the API server does not let us write something.
func refusals() []mutation {
	return []mutation{
		{
			name:   "a worker goes without its claim",
			edits:  []edit{{"internal/controller/slinky/nodeset/drive.go", "now.Sparing(refused.stay)", "now.Sparing(nil)"}},
			suite:  "test/integration/nodeset",
			caught: "TestAClaimThatMayNotBeChangedKeepsItsWorkerAndNoOther",
		},
		{
			name:   "a claim is looked at again only when something else happens",
			edits:  []edit{{"internal/controller/slinky/nodeset/drive.go", "return refused.again, errors.Join(", "return time.Time{}, errors.Join("}},
			suite:  "internal/controller/slinky/nodeset",
			caught: "TestAClaimThatMayNotBeChangedIsAProblemAndTriedAgainEachMinute",
		},
		{
			name:   "a claim that was refused is asked for in each pass",
			edits:  []edit{{"internal/controller/slinky/nodeset/claims.go", "return now.Before(c.until) && c", "return now.IsZero() && c"}},
			suite:  "internal/controller/slinky/nodeset",
			caught: "TestAClaimThatMayNotBeChangedIsAProblemAndTriedAgainEachMinute",
		},
		{
			name:   "a refused claim that somebody has changed waits for its minute",
			edits:  []edit{{"internal/controller/slinky/nodeset/claims.go", " && c.version == claim.ResourceVersion", ""}},
			suite:  "internal/controller/slinky/nodeset",
			caught: "TestARefusedClaimIsTriedAgainAtOnceWhenItOrItsOwnerIsAnother",
		},
		{
			name:   "a change of a refused claim wakes nobody",
			edits:  []edit{{"internal/controller/slinky/nodeset/nodes.go", "return refused || len(", "return refused && len("}},
			suite:  "test/integration/nodeset",
			caught: "TestAClaimThatMayNotBeChangedKeepsItsWorkerAndNoOther",
		},
		{
			name:   "half of a change takes effect when the rest cannot be written",
			edits:  []edit{{"internal/kube/apply.go", "refused = refused || conflict || immutable", "refused = refused && (conflict || immutable)"}},
			suite:  "internal/kube",
			caught: "TestObjectsOfOthersAreNotTouched/an_object_without_owner_and_labels",
		},
		{
			name:   "the server is asked for a change that is known to be refused",
			edits:  []edit{{"internal/kube/apply.go", "if s.refused != nil {", "if s.refused != nil && s.live == nil {"}},
			suite:  "internal/kube",
			caught: "TestAStatefulSetIsRecreatedWithoutItsPods",
		},
	}
}
