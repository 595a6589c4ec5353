// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package batch

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

func TestAVariableMeansWhatItsOptionMeans(t *testing.T) {
	page, err := os.ReadFile("../../../docs/users/activecheck.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := map[string]string{}
	for names, example := range documented(t) {
		examples[strings.Trim(names[strings.LastIndex(names, " ")+1:], "`")] = example
	}
	found := 0
	for _, o := range options() {
		if o.variable == "" {
			continue
		}
		found++
		if !strings.Contains(string(page), "`"+o.variable+"`") {
			t.Errorf("docs/users/activecheck.md does not name %s", o.variable)
		}
		example := examples["--"+o.long]
		want, wantErr := Parse("#!/bin/bash\n#SBATCH "+example+"\n", nil)
		want.Script = "#!/bin/bash\n"
		_, value, _ := strings.Cut(example, "=")
		got, err := Parse(want.Script, map[string]string{o.variable: value})
		if diff := cmp.Diff(want, got); diff != "" || err != nil || wantErr != nil {
			t.Errorf("%s=%s: %v, %v, (-option +variable):\n%s", o.variable, value, wantErr, err, diff)
		}
	}
	if found < 16 {
		t.Errorf("only %d options have a variable", found)
	}
}

func TestVariablesWinOverTheLinesOfAScript(t *testing.T) {
	const script = "#!/bin/bash\n#SBATCH --time=5 --gpus-per-node=8 --requeue\n"
	got, err := Parse(script, map[string]string{"SBATCH_TIMELIMIT": "7", "SBATCH_GPUS_PER_NODE": "", "SBATCH_NO_REQUEUE": "1", "PATH": "/bin", "SBATCH_WAIT": "1"})
	want, _ := Parse("#!/bin/bash\n#SBATCH --time=7 --no-requeue\n", nil)
	want.Script = script
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v, (-want +got):\n%s", err, diff)
	}
}

func TestAVariableThatCannotBeCarriedOverIsNamed(t *testing.T) {
	for name, test := range map[string]struct{ lines, name, value, want string }{
		"an option that is not supported":          {"", "SBATCH_QOS", "high", "variable SBATCH_QOS is not supported"},
		"a value that is none":                     {"", "SBATCH_TIMELIMIT", "soon", `variable SBATCH_TIMELIMIT: "soon" is no time such as 30, 30:00, 1:30:00 or 1-12`},
		"an empty value where sbatch refuses one":  {"", "SBATCH_TIMELIMIT", "", `variable SBATCH_TIMELIMIT: "" is no time such as 30, 30:00, 1:30:00 or 1-12`},
		"options that exclude each other":          {"#SBATCH --gres=gpu:1\n", "SBATCH_GPUS_PER_NODE", "1", "--gpus-per-node and --gres=gpu exclude each other"},
		"two amounts of memory, one in the script": {"#SBATCH --mem=1\n", "SBATCH_MEM_PER_CPU", "1", "--mem and --mem-per-cpu exclude each other"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Parse("#!/bin/bash\n"+test.lines, map[string]string{test.name: test.value}); err == nil || err.Error() != test.want {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}

func FuzzVariables(f *testing.F) {
	for _, o := range options() {
		f.Add("#!/bin/bash\n#SBATCH -t 5\n", o.variable, "1")
	}
	f.Add("#!/bin/bash\n", "SBATCH_QOS", "\xff")
	f.Fuzz(func(t *testing.T, script, name, value string) {
		without, refused := Parse(script, nil)
		s, err := Parse(script, map[string]string{name: value})
		switch {
		case refused != nil && err == nil && !strings.HasPrefix(name, "SBATCH_"):
			t.Fatalf("variable %q makes %q valid: %v", name, script, refused)
		case refused == nil && err == nil && !strings.HasPrefix(name, "SBATCH_") && !cmp.Equal(s, without, cmp.AllowUnexported(rest.Submission{})):
			t.Fatalf("variable %q changes the job: %s", name, cmp.Diff(without, s))
		}
	})
}
