// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package mutants tests the tests: bugs that operators of this kind have had are put into ours, one at a time, and the
// fault suite has to catch each. "make mutants" does so; it takes minutes. That each can still be put in is tested always.
package mutants

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var run = flag.Bool("mutants.run", false, "build each mutant and let the fault suite catch it")

// root is the top of the repository, seen from this package.
const root = "../.."

// edit replaces a text, which is in the file exactly once.
type edit struct{ file, old, new string }

// mutation is a bug.
type mutation struct {
	name  string
	edits []edit
	// caught is the part of the suite that has to catch it, for -test.run.
	caught string
}

func mutations() []mutation {
	return []mutation{
		{
			name: "a node look-up that failed is read as drained",
			edits: []edit{{
				"internal/nodeset/worker.go",
				`action.Message = "Slurm's view of the node is not known: " + w.Why`,
				`action.Delete, action.NeverStarted = w.Pod.Retired != "", true`,
			}},
			caught: "TestFaults/scale_down_with_jobs/Slurm_says_500",
		},
		{
			name: "the successor is never made after a rolling update",
			edits: []edit{{
				"internal/nodeset/plan.go",
				`len(plan.Create) < in.Replicas-len(in.Pods);`,
				`in.Replicas-len(in.Pods) != 1 && len(plan.Create) < in.Replicas-len(in.Pods);`,
			}},
			caught: "TestFaults/rolling_update_with_jobs/none",
		},
		{
			name: "workers that are not ready are not counted in maxUnavailable",
			edits: []edit{{
				"internal/nodeset/plan.go",
				`if ok && p.Retired == "" {
			serving++`,
				`if p.Retired == "" {
			serving++`,
			}},
			caught: "TestFaults/rolling_update_with_jobs/none",
		},
		{
			name:   "an unordered map reconfigures for ever",
			edits:  []edit{{"internal/render/label/label.go", `slices.Sorted(maps.Keys(content))`, `slices.Collect(maps.Keys(content))`}},
			caught: "TestFaults/create/none",
		},
		{
			name:   "what is about more than 250 pods stalls",
			edits:  []edit{{"internal/nodeset/plan.go", `len(plan.Create) < in.Replicas-len(in.Pods);`, `ordinal < 250 && len(plan.Create) < in.Replicas-len(in.Pods);`}},
			caught: "TestManyWorkers",
		},
		{
			name: "one conflict backs off for minutes",
			edits: []edit{{
				"internal/controller/slurmlink/slurmlink.go",
				`return ctrl.Result{RequeueAfter: time.Second}, nil`,
				`return ctrl.Result{RequeueAfter: 10 * time.Minute}, nil`,
			}},
			caught: "TestFaults/create/conflict",
		},
		{
			name: "every healthy pod is deleted after slurmctld has lost its state",
			edits: []edit{
				{"internal/link/snapshot.go", `if now.Sub(s.lost) < settle {`, `if now.Before(s.lost) {`},
				{"internal/nodeset/register.go", `w.Asked.Before(settled) {`, `w.Asked.Before(w.Pod.Created) {`},
				{"internal/nodeset/register.go", `if w.Pod.Retired == "" {`, `if w.Pod.Retired == "" && !w.Pod.Ready {`},
			},
			caught: "TestFaults/scale_up/slurmctld_restarts_without",
		},
	}
}

// apply returns the mutated files by their names.
func (m mutation) apply(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, e := range m.edits {
		text, ok := files[e.file]
		if !ok {
			read, err := os.ReadFile(filepath.Join(root, e.file))
			if err != nil {
				t.Fatal(err)
			}
			text = string(read)
		}
		if n := strings.Count(text, e.old); n != 1 {
			t.Fatalf("%s has %d times what the mutation replaces:\n%s", e.file, n, e.old)
		}
		files[e.file] = strings.Replace(text, e.old, e.new, 1)
	}
	return files
}

func TestEveryMutationStillApplies(t *testing.T) {
	for _, m := range mutations() {
		t.Run(m.name, func(t *testing.T) { m.apply(t) })
	}
}

func TestEveryMutantIsCaught(t *testing.T) {
	if !*run {
		t.Skip("takes minutes; run by \"make mutants\"")
	}
	for _, m := range mutations() {
		t.Run(m.name, func(t *testing.T) {
			dir := t.TempDir()
			overlay := struct{ Replace map[string]string }{map[string]string{}}
			for file, text := range m.apply(t) {
				original, err := filepath.Abs(filepath.Join(root, file))
				if err != nil {
					t.Fatal(err)
				}
				mutated := filepath.Join(dir, filepath.Base(file))
				if err := os.WriteFile(mutated, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				overlay.Replace[original] = mutated
			}
			text, err := json.Marshal(overlay)
			if err != nil {
				t.Fatal(err)
			}
			list, binary := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "faults.test")
			if err := os.WriteFile(list, text, 0o600); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-overlay", list, "-o", binary, root+"/test/faults").CombinedOutput(); err != nil {
				t.Fatalf("building the mutant: %v\n%s", err, out)
			}
			out, err := exec.CommandContext(t.Context(), binary, "-test.run", m.caught, "-test.timeout", "10m").CombinedOutput()
			var failed *exec.ExitError
			switch {
			case err == nil:
				t.Errorf("%s does not notice:\n%s", m.caught, out)
			case !errors.As(err, &failed) || !strings.Contains(string(out), "--- FAIL"):
				t.Errorf("%s ended in another way: %v\n%s", m.caught, err, out)
			default:
				t.Logf("caught by %s:\n%s", m.caught, first(string(out), 6))
			}
		})
	}
}

// first is the beginning of a text.
func first(text string, lines int) string {
	all := strings.SplitN(text, "\n", lines+1)
	return strings.Join(all[:min(lines, len(all))], "\n")
}
