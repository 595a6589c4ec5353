// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import "testing"

func TestAResultReadsAsASentence(t *testing.T) {
	result := Result{Changes: []Change{
		{Action: Unchanged, Object: Ref{"ConfigMap", "a", "same"}},
		{Action: Created, Object: Ref{"ConfigMap", "a", "new"}},
		{Action: Updated, Object: Ref{"Service", "a", "s"}, Path: "spec.ports"},
	}}.Join(Result{Changes: []Change{{Action: Waiting, Object: Ref{"StatefulSet", "a", "old"}}}})
	const want = "created ConfigMap a/new, updated Service a/s (spec.ports), waiting for StatefulSet a/old to be deleted"
	if got := result.String(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if !result.Wrote() {
		t.Error("it says that nothing was written")
	}
	if rest := (Result{Changes: result.Changes[:1]}); rest.Wrote() || rest.String() != "" {
		t.Errorf("at rest: %q", rest)
	}
}
