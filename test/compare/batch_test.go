// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/batch"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
	"github.com/coxswain-hpc/coxswain/test/realslurm"
)

// documented returns the examples of the table of #SBATCH options in the documentation.
func documented(t *testing.T) []string {
	t.Helper()
	page, err := os.ReadFile("../../docs/users/activecheck.md")
	if err != nil {
		t.Fatal(err)
	}
	var examples []string
	for _, found := range regexp.MustCompile("(?m)^\\| `-.* \\| `(--[^`]+)` \\|$").FindAllStringSubmatch(string(page), -1) {
		examples = append(examples, found[1])
	}
	if len(examples) < 20 {
		t.Fatalf("the documentation has only the examples %v", examples)
	}
	return examples
}

// scripts are #SBATCH lines, by what they are about.
func scripts(t *testing.T) map[string]string {
	out := map[string]string{
		"nothing":                          "",
		"several options in a line":        "#SBATCH --ntasks=2 -c 2 --mem=100 # a comment",
		"short options":                    "#SBATCH -J a -pmain -t 5 -N1 -n2 -c 1",
		"values as words":                  "#SBATCH --job-name a --time 5 --comment b",
		"quotes":                           `#SBATCH --comment="a b" --job-name='c "d' -o /tmp/a\ b`,
		"a quote within a word":            `#SBATCH --comm` + `ent=a" b"c`,
		"comments and empty lines between": "# one\n\n#SBATCH -J a\n   \n## SBATCH -J b\n##SBATCH -J c\n# SBATCH -J d\n  # e",
		"lines after a command":            "#SBATCH -J a\ntrue\n#SBATCH -J b",
		"an indented line":                 "#SBATCH -J a\n  #SBATCH -J b",
		"tabs":                             "#SBATCH\t-J\ta",
		"the last one counts":              "#SBATCH -J a -t 5\n#SBATCH -t 7 -J b",
		"no GPUs after some":               "#SBATCH --gpus-per-node=1 --gpus-per-node=",
		"both requeues":                    "#SBATCH --requeue --no-requeue",
		"tasks of each node":               "#SBATCH -N 2 --ntasks-per-node=2",
		"tasks of each node and all":       "#SBATCH -N 2 --ntasks-per-node=2 -n 4",
		"tasks of each node without nodes": "#SBATCH --ntasks-per-node=2",
		"two nodes by name":                "#SBATCH -w a,b",
		"two nodes by name and number":     "#SBATCH -w a,b -N 2",
		"as checks do": "#SBATCH --deadline=now+12hours\n#SBATCH --time=15:00\n#SBATCH --gpus-per-node=2\n#SBATCH --exclusive\n" +
			"#SBATCH --mem=0\n#SBATCH --ntasks-per-node=1\n#SBATCH --cpus-per-task=4",
	}
	for _, limit := range []string{"5", "5:30", "0:30:00", "1-2", "1-2:3", "1-2:3:4", "0", "UNLIMITED", "infinite", "90:59", "0:01"} {
		out["time limit "+limit] = "#SBATCH --time=" + limit
	}
	for _, amount := range []string{"0", "100", "100M", "1g", "1024K", "1025K"} {
		out["memory "+amount] = "#SBATCH --mem=" + amount
	}
	for _, example := range documented(t) {
		out["the example "+example] = "#SBATCH " + example
	}
	return out
}

// refusedScripts are whole scripts that sbatch does not take, by what is wrong.
func refusedScripts() map[string]string {
	out := map[string]string{
		"nothing": "", "blanks": " \n\n", "no interpreter": "true\n", "an empty line first": "\n#!/bin/bash\ntrue\n", "DOS line breaks": "#!/bin/bash\r\ntrue\r\n",
	}
	for _, line := range []string{
		"--nonsense", "--nonsense=1", "-@", "--time", "--time=x", "--time=", "--time=1:2:3:4", "--mem=5X", "--mem=x", "--mem=", "--nodes=x", "--nodes=0",
		"--nodes=3-2", "--ntasks=0", "--ntasks=x", "--cpus-per-task=0", "--cpus-per-task=x", "--signal=XYZ", "--signal=USR1@x",
		"--requeue=1", "--no-requeue=1", "--exclusive=x", "--gpus-per-node=x:y:z", "--gres=gpu:x:y:z", "--mem=1 --mem-per-cpu=1",
		"--gres=gpu:1 --gpus-per-node=1", "--deadline=x", "--deadline=now+1x", `--comment="a`, "--comment='a", "--ntasks-per-node=x",
	} {
		out[line] = "#!/bin/bash\n#SBATCH " + line + "\ntrue\n"
	}
	return out
}

// What sbatch refuses is refused here, too; not everything that is refused here is refused by sbatch.
func TestASlurmScriptThatSbatchRefusesIsRefused(t *testing.T) {
	for _, root := range realslurm.Roots(t) {
		t.Run(root.Release, func(t *testing.T) {
			t.Parallel()
			s := original(t, root, "EnforcePartLimits=NO", true)
			s.Register(named("a"), named("b"))
			settled(t, s, "a", "b")
			cases := refusedScripts()
			for _, name := range slices.Sorted(maps.Keys(cases)) {
				theirs, err := sbatch(s, cases[name])
				_, ours := batch.Parse(cases[name], nil)
				switch {
				case err == nil:
					t.Errorf("%s: sbatch takes it as job %s; we say %v", name, theirs, ours)
				case ours == nil:
					t.Errorf("%s: sbatch says %s, we take it", name, theirs)
				}
			}
		})
	}
}

// sbatch submits a script as alice, with variables, and returns what it prints.
func sbatch(s *system, script string, environment ...string) (string, error) {
	s.t.Helper()
	box := s.driver.(*real).box
	if err := os.WriteFile(box.Path("job"), []byte(script), 0o755); err != nil {
		s.t.Fatal(err)
	}
	return box.Try(asAlice(slices.Concat([]string{"env"}, environment, []string{"sbatch", "--parsable", "/mnt/job"})...)...)
}

// A script sees the same variables of Slurm, but for those about the place from where sbatch submits.
func TestASlurmScriptSeesWhatItSeesBySbatch(t *testing.T) {
	for _, root := range realslurm.Roots(t) {
		t.Run(root.Release, func(t *testing.T) {
			t.Parallel()
			s := original(t, root, "EnforcePartLimits=NO", true)
			withGPUs(t, s)
			for _, example := range append(
				documented(t), "", "-N 2 --ntasks-per-node=2", "-N 1-2 --ntasks-per-node=2", "-n 4 --ntasks-per-node=2", "-N 2 -c 2", "-n 2 -c 2",
				"-N 2 --ntasks-per-node=2 -n 3", "-N 2 --gpus-per-node=1 --ntasks-per-node=1 -c 4 --exclusive --mem=0", "-w a,b --ntasks-per-node=1",
			) {
				if strings.HasPrefix(example, "--reservation") || strings.HasPrefix(example, "--output") || strings.HasPrefix(example, "--error") {
					continue
				}
				t.Run(example, func(t *testing.T) { sameVariables(t, s, example) })
			}
		})
	}
}

func sameVariables(t *testing.T, s *system, example string) {
	line := "#SBATCH " + example + "\n"
	if example == "" {
		line = ""
	}
	script := "#!/bin/bash\n#SBATCH --output=/mnt/env-%j\n" + line + "env | grep SLURM; echo end\n"
	submission, err := batch.Parse(script, nil)
	if err != nil {
		t.Fatal(err)
	}
	submission.Directory, submission.Name = cmp.Or(submission.Directory, "/tmp"), cmp.Or(submission.Name, "job")
	submission.Environment = []string{"PATH=/usr/bin:/bin"}
	settled(t, s, "a", "b") // both submissions have to find the same, and a job before may be COMPLETING
	theirs, err := sbatch(s, script)
	if err != nil {
		t.Fatalf("sbatch says %s", theirs)
	}
	want := variablesOf(t, s, theirs)
	settled(t, s, "a", "b")
	ours, err := s.client.SubmitJob(t.Context(), issuer(t, "alice"), submission)
	if err != nil {
		t.Fatal(err)
	}
	got := variablesOf(t, s, strconv.FormatInt(ours, 10))
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if want[key] != got[key] {
			t.Errorf("sbatch makes %s=%s, we make %q", key, want[key], got[key])
		}
	}
	for key := range got {
		if _, ok := want[key]; !ok {
			t.Errorf("sbatch makes no %s, we make %q", key, got[key])
		}
	}
}

// Slurm does not show the signal that a job gets before its limit.
func TestASlurmScriptGetsItsSignal(t *testing.T) {
	const script = "#!/bin/bash\n#SBATCH --time=1 --signal=B:USR1@55 --output=/dev/null\ntrap 'exit 7' USR1\nwhile :; do sleep 0.2; done\n"
	for _, root := range realslurm.Roots(t) {
		t.Run(root.Release, func(t *testing.T) {
			t.Parallel()
			s := original(t, root, "", false)
			s.Register(named("a"))
			settled(t, s, "a")
			submission, err := batch.Parse(script, nil)
			if err != nil {
				t.Fatal(err)
			}
			submission.Directory, submission.Environment = "/tmp", []string{"PATH=/usr/bin:/bin"}
			if said, err := sbatch(s, script); said != "1" || err != nil {
				t.Fatalf("sbatch says %s, %v", said, err)
			}
			if said := submitsByREST(submission)(s); said != "job 2" {
				t.Fatal(said)
			}
			for id := range int64(2) {
				if said := shows(id+1, "FAILED", "NonZeroExitCode")(s); !strings.Contains(said, " code 7 ") {
					t.Error(said)
				}
			}
		})
	}
}

// variablesOf waits for a job's output.
func variablesOf(t *testing.T, s *system, id string) map[string]string {
	t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(settles); ; <-tick.C {
		text, err := os.ReadFile(s.driver.(*real).box.Path("env-" + id))
		if err == nil && strings.HasSuffix(string(text), "end\n") {
			found := map[string]string{}
			for line := range strings.Lines(string(text)) {
				key, value, ok := strings.Cut(strings.TrimSpace(line), "=")
				if ok && !slices.Contains(unlike(), key) {
					found[key] = value
				}
			}
			return found
		}
		if time.Now().After(deadline) {
			t.Fatalf("job %s has written %q, %v; %s", id, text, err, s.driver.(*real).box.Run("squeue", "-a"))
		}
	}
}

// unlike are variables that differ from job to job, or by the place from where a job is submitted.
func unlike() []string {
	return []string{
		"SLURM_JOB_START_TIME", "SLURM_JOB_END_TIME", "SLURM_JOB_ID", "SLURM_JOBID", "SLURM_JOB_SLUID", "SLURM_TASK_PID",
		"SLURM_SUBMIT_HOST", "SLURM_SUBMIT_DIR", "SLURM_PRIO_PROCESS",
	}
}

func TestASlurmJobIsWhatSbatchMakesOfItsScript(t *testing.T) {
	for _, root := range realslurm.Roots(t) {
		t.Run(root.Release, func(t *testing.T) {
			t.Parallel()
			s := original(t, root, "EnforcePartLimits=NO", true)
			withGPUs(t, s)
			if said := s.Reserve(reservation{"r", "a", ""}); said != "done" {
				t.Fatal(said)
			}
			// No job starts, so that nothing but the submission makes a difference.
			s.driver.(*real).box.Run("scontrol", "update", "PartitionName=main", "State=DOWN")
			cases := scripts(t)
			for _, name := range slices.Sorted(maps.Keys(cases)) {
				t.Run(name, func(t *testing.T) { same(t, s, "#!/bin/bash\n"+cases[name]+"\ntrue\n", nil) })
			}
			for _, one := range withVariables() {
				t.Run("variables "+strings.Join(one.variables, " "), func(t *testing.T) {
					same(t, s, "#!/bin/bash\n"+one.lines+"\ntrue\n", one.variables)
				})
			}
		})
	}
}

// withGPUs starts two nodes with feature f and two devices each that pass for GPUs.
func withGPUs(t *testing.T, s *system) {
	t.Helper()
	conf := s.driver.(*real).box.Path("etc/slurm/gres.conf")
	if err := os.WriteFile(conf, []byte("Name=gpu File=/dev/null\nName=gpu File=/dev/zero\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	gpu := func(n *fake.Node) { n.RealMemory, n.CPUs, n.Gres, n.Features = 4000, 4, "gpu:2", []string{"f"} }
	s.Register(named("a", gpu), named("b", gpu))
	settled(t, s, "a", "b")
}

// settled waits until nodes are idle.
func settled(t *testing.T, s *system, names ...string) {
	t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(settles); ; <-tick.C {
		shown, err := s.look()
		if err == nil && !slices.ContainsFunc(names, func(name string) bool { return !strings.Contains("\n"+shown, "\n"+name+" IDLE+DYNAMIC_NORM ") }) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%v, nodes are\n%s", err, shown)
		}
	}
}

// same submits a script by sbatch and by REST, with variables NAME=value, and compares what slurmctld shows of both jobs.
func same(t *testing.T, s *system, script string, environment []string) {
	variables := map[string]string{}
	for _, one := range environment {
		name, value, _ := strings.Cut(one, "=")
		variables[name] = value
	}
	submission, err := batch.Parse(script, variables)
	if err != nil {
		t.Fatal(err)
	}
	if submission.Directory == "" {
		submission.Directory = "/tmp"
	}
	submission.Name, submission.Environment = cmp.Or(submission.Name, "job"), []string{"PATH=/usr/bin:/bin"}
	out, err := sbatch(s, script, environment...)
	if err != nil {
		t.Fatalf("sbatch says %s", out)
	}
	theirs, err := strconv.ParseInt(out, 10, 64)
	if err != nil {
		t.Fatalf("sbatch says %q", out)
	}
	ours, err := s.client.SubmitJob(t.Context(), issuer(t, "alice"), submission)
	if err != nil {
		t.Fatal(err)
	}
	want, got := fieldsOf(t, s, theirs), fieldsOf(t, s, ours)
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if want[key] != got[key] {
			t.Errorf("%s: sbatch makes %s, we make %s", key, want[key], got[key])
		}
	}
	if err := s.client.CancelJobs(t.Context(), []int64{theirs, ours}); err != nil {
		t.Fatal(err)
	}
}

// fieldsOf returns what slurmctld shows of a job, but for what differs from job to job.
func fieldsOf(t *testing.T, s *system, id int64) map[string]string {
	t.Helper()
	var answer struct{ Jobs []map[string]json.RawMessage }
	if status, err := s.call(http.MethodGet, fmt.Sprintf("job/%d", id), "", &answer); err != nil || status != http.StatusOK || len(answer.Jobs) != 1 {
		t.Fatalf("job %d: %d, %v", id, status, err)
	}
	fields := map[string]string{}
	for key, value := range answer.Jobs[0] {
		fields[key] = strings.Join(strings.Fields(string(value)), " ")
		if strings.HasPrefix(key, "standard_") { // 24.11 writes the number into it
			fields[key] = strings.ReplaceAll(fields[key], strconv.FormatInt(id, 10), "%j")
		}
	}
	// A deadline counts from the submission: the two jobs are not of one second, and may be of two minutes.
	var end, submitted struct{ Number int64 }
	if err := errors.Join(json.Unmarshal(answer.Jobs[0]["deadline"], &end), json.Unmarshal(answer.Jobs[0]["submit_time"], &submitted)); err != nil {
		t.Fatal(err)
	}
	fields["deadline"] = "none"
	if end.Number != 0 {
		fields["deadline"] = fmt.Sprint(time.Unix(end.Number, 0).Sub(time.Unix(submitted.Number, 0)).Round(time.Minute))
	}
	for _, own := range []string{
		"job_id", "step_id", "command", "submit_line", "stdout_expanded", "stderr_expanded", "submit_time", "eligible_time", "accrue_time",
		"last_sched_evaluation", "start_time", "end_time", "priority", "state_reason", "state_description",
		// sbatch writes /dev/null for no input, which slurmd takes by itself.
		"standard_input", "stdin_expanded",
	} {
		delete(fields, own)
	}
	return fields
}
