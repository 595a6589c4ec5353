// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package mutants

// leaders are bugs with two processes of the operator that both believe to lead (docs/decisions/015).
func leaders() []mutation {
	const caught = "TestWhatAFormerLeaderHasSentKillsNoJob"
	return []mutation{
		{
			name: "a worker goes while a former leader's undrain may be under way",
			edits: []edit{{
				"internal/controller/worker/workerplan/opening.go", "return w.Now.Before(w.OpeningUntil)", "return w.Now.Before(w.OpeningUntil.Add(-3*time.Minute))",
			}},
			caught: caught,
		},
		{
			name: "what another process has announced is not heeded",
			edits: []edit{{
				"internal/controller/worker/announcements.go", "w.Opening.By == a.process || !w.Now", "true || !w.Now",
			}},
			caught: caught,
		},
	}
}
