// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package mutants tests the tests: bugs that operators of this kind have had are put into ours, one at a time, and the
// fault suite, or the tests of a package, have to catch each. "make mutants" does so; it takes minutes. That each can still be
// put in is tested always.
package mutants

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var (
	run   = flag.Bool("mutants.run", false, "build each mutant and let the fault suite catch it")
	every = flag.Int("mutants.every", 6, "first, let the fault suite try its faults at every so many writes, as -faults.every does")
	share = flag.Int("mutants.share", 3, "first, let the fault suite try its faults in every so many scenarios, as -faults.share does")
)

// root is the top of the repository, seen from this package.
const root = "../.."

// mutation is a bug.
type mutation struct {
	name  string
	edits []edit
	// suite is the directory of the tests that have to catch it; default: test/faults.
	suite string
	// caught is the part of the suite that has to catch it, for -test.run.
	caught string
}

func mutations() []mutation {
	return slices.Concat(theirs(), ours(), records(), admitted(), retirements(), leaders(), pins(), files(), healths(), partitions(), refusals(), configurations(), accounts(), words(), drains(), required(), waits(), naming(), checks())
}

// theirs are bugs that other operators of this kind have had (reliability.md).
func theirs() []mutation {
	return []mutation{
		{
			name: "a node look-up that failed is read as drained",
			edits: []edit{{
				"internal/controller/worker/workerplan/end.go",
				`return end{message: "the state of the node in Slurm is not known: " + f.Why}`,
				`return end{Deletion: Deletion{Delete: f.Pod.Retired != "", NeverStarted: true}}`,
			}},
			caught: "TestFaults/scale_down_with_jobs/Slurm_says_500",
		},
		{
			name: "the successor is never made after a rolling update",
			edits: []edit{{
				"internal/controller/slinky/nodeset/nodesetplan/plan.go",
				`len(plan.Create) < in.Replicas-len(in.Pods);`,
				`in.Replicas-len(in.Pods) != 1 && len(plan.Create) < in.Replicas-len(in.Pods);`,
			}},
			caught: "TestFaults/rolling_update_with_jobs/none",
		},
		{
			name: "workers that are not ready are not counted in maxUnavailable",
			edits: []edit{{
				"internal/controller/slinky/nodeset/nodesetplan/update.go",
				`case ok && p.Retired == "":
			serving++`,
				`case p.Retired == "":
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
			edits:  []edit{{"internal/controller/slinky/nodeset/nodesetplan/plan.go", `len(plan.Create) < in.Replicas-len(in.Pods);`, `ordinal < 250 && len(plan.Create) < in.Replicas-len(in.Pods);`}},
			caught: "TestManyWorkers",
		},
		{
			name: "one conflict backs off for minutes",
			edits: []edit{{
				"internal/controller/slinky/slurmcaches/slurmcaches.go",
				`return ctrl.Result{RequeueAfter: time.Second}, nil`,
				`return ctrl.Result{RequeueAfter: 10 * time.Minute}, nil`,
			}},
			caught: "TestFaults/create/conflict",
		},
		{
			name: "every healthy pod is deleted after slurmctld has lost its state",
			edits: []edit{
				{"internal/slurm/slurmcache/snapshot.go", `if now.Sub(s.lostSince) < suspectTimeout {`, `if now.Before(s.lostSince) {`},
				{"internal/controller/worker/workerplan/absence.go", `When: func(f *facts) bool { return !f.Settled() }`, `When: func(*facts) bool { return false }`},
				{"internal/controller/worker/workerplan/absence.go", `When: func(f *facts) bool { return f.SlurmStateLost == node.No }`, `When: func(*facts) bool { return true }`},
				{"internal/controller/worker/workerplan/end.go", `When: func(f *facts) bool { return f.Pod.Retired == "" },`, `When: func(f *facts) bool { return f.Pod.Retired == "" && !f.Pod.Ready },`},
				{"internal/controller/worker/gather.go", `case workerpod.Lost(s.set), w.Pod.Was && snapshot.Forgotten(s.node):`, `case false:`},
			},
			caught: "TestFaults/scale_up/slurmctld_restarts_without",
		},
	}
}

// ours returns bugs that this operator has had, or that its tests should catch.
func ours() []mutation {
	const gather, drive = "internal/controller/worker/gather.go", "internal/controller/worker/drive.go"
	return []mutation{
		{
			name:   "workers are drained that their NodeSet leaves behind",
			edits:  []edit{{gather, `return !metav1.IsControlledBy(&live, s.set), nil`, `return false, nil`}},
			caught: "TestWorkersThatWereOrphanedUnseenAreNotDrained",
		},
		{
			name:   "a NodeSet goes although the cache lacks a worker of it",
			edits:  []edit{{"internal/controller/slinky/nodeset/departure.go", `if err != nil || len(pods.Items) > 0 {`, `if err != nil || len(pods.Items) >= 0 {`}},
			caught: "TestANodeSetStaysForAWorkerThatIsNotInTheCacheYet",
		},
		{
			name:   "the drain of an administrator is ended",
			edits:  []edit{{"internal/controller/worker/workerplan/state_change.go", `node.HeldBy(f.State, f.Reason) == node.Operator && f.mayUndrain()`, `f.mayUndrain()`}},
			caught: "TestFaults/cordon_storm/an_administrator_drains",
		},
		{
			name:   "a node that looks idle is taken for one without jobs",
			edits:  []edit{{"internal/controller/worker/workerplan/protection.go", "if w.JobsKnown != node.Yes {\n\t\treturn node.Unknown", "if w.JobsKnown != 7 {\n\t\treturn node.No"}},
			caught: "TestFaults/scale_down_with_suspended_jobs/none",
		},
		{
			name:   "the budget of deletions is not kept",
			edits:  []edit{{drive, `granted == 0 {`, `granted < 0 {`}},
			caught: "TestManyWorkers",
		},
		{
			name:   "an idle worker may be evicted, and so may one on which a job has just started",
			edits:  []edit{{"internal/controller/worker/workerplan/protection.go", `When: func(f *facts) bool { return f.Free() != node.Yes }`, `When: func(f *facts) bool { return f.State.Busy() != node.No }`}},
			caught: "TestFaults/evictions/none",
		},
		{
			name:   "a worker takes jobs again before it is protected",
			edits:  []edit{{drive, `if s.action.StateChange.Opens() {`, `if s.action.StateChange.Revive {`}},
			caught: "TestFaults/evictions/Slurm_says_500",
		},
		{
			name:   "a worker takes jobs again when its protection met a conflict",
			edits:  []edit{{"internal/controller/worker/mark.go", "return false, nil\n\tcase err != nil:", "return true, nil\n\tcase err != nil:"}},
			suite:  "internal/controller/worker",
			caught: "TestAFormerLeaderTakesNoProtectionOffThatItHasNotSeen",
		},
		{
			name: "a silent slurmrestd stalls the NodeSets of all clusters",
			edits: []edit{
				{"internal/controller/slinky/nodeset/calls.go", `slurmCallTimeout = 5 * time.Second`, `slurmCallTimeout = 5 * time.Minute`},
				{"internal/controller/slinky/nodeset/calls.go", `if !r.calls.Enter(cluster, 1) {`, `if !r.calls.Enter(cluster, 1) && cluster.Name == "" {`},
			},
			caught: "TestOneSilentClusterStarvesNoOther",
		},
		{
			name:   "a former leader takes off the protection that another one has put on",
			edits:  []edit{{"internal/controller/worker/mark.go", `if !wanted || s.action.Announce {`, `if is && !wanted || s.action.Announce {`}},
			suite:  "internal/controller/worker",
			caught: "TestAFormerLeaderTakesNoProtectionOffThatItHasNotSeen",
		},
		{
			name:   "one endpoint can exhaust the memory of the operator",
			edits:  []edit{{"internal/slurm/rest/bound.go", `MaxNodes = 65536`, `MaxNodes = 1 << 40`}},
			caught: "TestAListOfTooManyNodesIsNotBelieved",
		},
		{
			name: "Slurm's clock is taken for ours",
			edits: []edit{
				{"internal/slurm/slurmcache/snapshot.go", `t = t.Add(-s.Ahead)`, `t = t.Add(0 * s.Ahead)`},
				{"internal/slurm/slurmcache/snapshot.go", `known && t.After(seen.Add(maxClockDifference))`, `known && t.After(seen.AddDate(1, 0, 0))`},
			},
			caught: "TestDrainTimeoutIsTheSameByAnyClock",
		},
		{
			name:   "a time of Slurm is not told by our clock",
			edits:  []edit{{"internal/slurm/slurmcache/snapshot.go", `t = t.Add(-s.Ahead)`, `t = t.Add(0 * s.Ahead)`}},
			suite:  "internal/slurm/slurmcache",
			caught: "TestATimeOfANodeIsNoLaterThanTheNodeWasSeenToHaveIt",
		},
		{
			name:   "a worker is not available because another clock is ahead",
			edits:  []edit{{"internal/controller/slinky/nodeset/nodesetplan/update.go", `in.MinReady > 0 && in.Now.Before(at)`, `in.Now.Before(at)`}},
			caught: "TestFaults/rolling_update_with_jobs/Kubernetes'_clock_is_ahead",
		},
		{
			name:   "the end of a pod overwrites a drain that slurmctld was too slow to show",
			edits:  []edit{{"internal/render/slurmd/slurmd.go", "|| exit 0\naddress=$name", "|| true\naddress=$name"}, {"internal/render/slurmd/slurmd.go", "\n*) exit 0 ;;", ""}},
			suite:  "internal/render/slurmd",
			caught: "TestTheEndOfAPodKeepsWhatAnAdministratorSaid",
		},
		{
			name:   "a pod that comes back sets the node of the worker down that took its place",
			edits:  []edit{{"internal/render/slurmd/slurmd.go", `case " $name $(hostname -I) " in *" $address "*) ;; *) exit 0 ;; esac` + "\n", ""}},
			suite:  "internal/render/slurmd",
			caught: "TestTheEndOfAPodKeepsWhatAnAdministratorSaid",
		},
		{
			name:   "an operator whose clock goes ahead holds up the end of workers for hours",
			edits:  []edit{{"internal/workerpod/opening.go", "return seen.Add(maxOpeningDuration)", "return o.At.Add(maxOpeningDuration)"}},
			suite:  "internal/controller/worker",
			caught: "TestAClockThatGoesAheadHoldsNobodyUp",
		},
		{
			name:   "more Kubernetes nodes than a tenth begin while the cache is behind",
			edits:  []edit{{"internal/controller/kubernetesnode/gather.go", "r.Applier.Behind(ctx, &cached)", "r.Applier.Behind(ctx, r.begun)"}},
			suite:  "internal/controller/kubernetesnode",
			caught: "TestNoNodeBeginsUntilTheCacheShowsTheLastOneThatDid",
		},
		{
			name:   "two workers with long host names are one pod",
			edits:  []edit{{"api/slinky/v1beta1/names.go", "const digits = 10", "const digits = 5"}},
			suite:  "api/slinky/v1beta1",
			caught: "TestLongNamesOfDaemonPodsAreTheirOwn",
		},
		{
			name:   "a pod of somebody else keeps the workers behind it from being made",
			edits:  []edit{{"internal/controller/slinky/nodeset/create.go", "errors.AsType[*kube.ConflictError](err); ok {", "errors.AsType[*kube.ConflictError](err); ok && len(places) == 0 {"}},
			suite:  "test/integration/nodeset",
			caught: "TestAPodOfSomebodyElseIsLeftAlone",
		},
		{
			name:   "a worker takes the Slurm node of another one over",
			edits:  []edit{{"internal/controller/slinky/nodeset/names.go", "pods[i].Name != pod.Name && (", "pods[i].Name == pod.Name && ("}},
			suite:  "test/integration/nodeset",
			caught: "TestNoWorkerTakesTheNameOfAnotherOne",
		},
		{
			name:   "the record of a machine with a long host name is deleted",
			edits:  []edit{{"internal/controller/slinky/nodeset/nodesetplan/orphaned_nodes.go", "exists && (f.hostNetwork || kube.Hostname == f.Name)", "exists && kube.Hostname == f.Name"}},
			suite:  "internal/controller/slinky/nodeset/nodesetplan",
			caught: "TestWhichOrphanedNodesAreDeleted",
		},
		{
			name:   "users' jobs may read slurmd's log and write into it",
			edits:  []edit{{"internal/render/pod/logfile.sh", "mode=0600\n", "mode=0777\n"}},
			suite:  "internal/render/pod",
			caught: "TestJobsGetNothingOfTheLog",
		},
		{
			name:   "a restarted sidecar makes another log than the daemon has open",
			edits:  []edit{{"internal/render/pod/logfile.sh", `[ -p "$SOCKET" ] || {`, `{`}},
			suite:  "internal/render/pod",
			caught: "TestADaemonKeepsItsLogWhenTheSidecarIsRestarted",
		},
	}
}

// TestEveryMutationNamesTheTestThatCatchesIt finds mutations that no run could catch.
func TestEveryMutationNamesTheTestThatCatchesIt(t *testing.T) {
	names := map[string]bool{}
	for _, m := range mutations() {
		test, _, _ := strings.Cut(m.caught, "/")
		files, err := filepath.Glob(filepath.Join(root, cmp.Or(m.suite, "test/faults"), "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		has := func(file string) bool {
			text, err := os.ReadFile(file)
			return err == nil && strings.Contains(string(text), "\nfunc "+test)
		}
		switch {
		case m.name == "" || len(m.edits) == 0 || names[m.name]:
			t.Errorf("the mutation %q, caught by %q, has no name or no edits, or there are two of it", m.name, m.caught)
		case test == "" || !slices.ContainsFunc(files, has):
			t.Errorf("%s: %s has no test %q", m.name, cmp.Or(m.suite, "test/faults"), test)
		}
		names[m.name] = true
	}
}

// TestEveryMutationStillApplies puts all mutations in, as many at once as do not replace the same, and compiles that.
func TestEveryMutationStillApplies(t *testing.T) {
	var mutants []map[string]string
	for _, m := range mutations() {
		if err := m.apply(map[string]string{}); err != nil {
			t.Errorf("%s: %v", m.name, err)
			continue
		}
		joined := slices.ContainsFunc(mutants, func(files map[string]string) bool {
			both := maps.Clone(files)
			if m.apply(both) != nil {
				return false
			}
			maps.Copy(files, both)
			return true
		})
		if !joined {
			mutants = append(mutants, map[string]string{})
			if err := m.apply(mutants[len(mutants)-1]); err != nil {
				t.Error(err)
			}
		}
	}
	for _, files := range mutants {
		arguments := []string{"build", "-overlay", overlay(t, files)}
		for file := range files {
			arguments = append(arguments, root+"/"+filepath.Dir(file))
		}
		if out, err := exec.CommandContext(t.Context(), "go", arguments...).CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	}
}

// TestEveryMutantIsCaught tries what the gate tries of the fault suite, and if that does not catch the mutant, every fault at every write.
func TestEveryMutantIsCaught(t *testing.T) {
	if !*run {
		t.Skip("takes minutes; run by \"make mutants\"")
	}
	for _, m := range mutations() {
		t.Run(m.name, func(t *testing.T) {
			files := map[string]string{}
			if err := m.apply(files); err != nil {
				t.Fatal(err)
			}
			dir := filepath.Join(root, cmp.Or(m.suite, "test/faults"))
			binary := filepath.Join(t.TempDir(), "suite.test")
			if out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-overlay", overlay(t, files), "-o", binary, dir).CombinedOutput(); err != nil {
				t.Fatalf("building the mutant: %v\n%s", err, out)
			}
			sampled, all := []string(nil), []string{"-faults.every=1", "-faults.share=1"}
			if m.suite == "" {
				sampled = []string{fmt.Sprintf("-faults.every=%d", *every), fmt.Sprintf("-faults.share=%d", *share)}
			}
			by := "the gate"
			out, err := suite(t, dir, binary, m.caught, sampled)
			if err == nil && m.suite == "" {
				by = "test-long alone"
				out, err = suite(t, dir, binary, m.caught, all)
			}
			var failed *exec.ExitError
			switch {
			case err == nil:
				t.Errorf("%s does not notice:\n%s", m.caught, out)
			case !errors.As(err, &failed) || !strings.Contains(out, "--- FAIL"):
				t.Errorf("%s ended in another way: %v\n%s", m.caught, err, out)
			default:
				t.Logf("caught by %s, in %s:\n%s", by, m.caught, first(out, 6))
			}
		})
	}
}

// suite runs a part of a suite until a test of it fails.
func suite(t *testing.T, dir, binary, part string, flags []string) (string, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), binary, append([]string{"-test.run", part, "-test.timeout", "20m", "-test.failfast"}, flags...)...)
	command.Dir = dir
	out, err := command.CombinedOutput()
	return string(out), err
}

// first returns the beginning of a text.
func first(text string, lines int) string {
	all := strings.SplitN(text, "\n", lines+1)
	return strings.Join(all[:min(lines, len(all))], "\n")
}
