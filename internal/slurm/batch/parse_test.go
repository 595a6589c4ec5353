// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package batch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

func TestWhatTheLinesOfAScriptSay(t *testing.T) {
	for name, test := range map[string]struct {
		lines string
		want  rest.Submission
	}{
		"nothing": {"true", rest.Submission{}},
		"what checks say": {
			"#SBATCH --deadline=now+12hours\n#SBATCH --time=15:00\n#SBATCH --gpus-per-node=8\n#SBATCH --exclusive\n#SBATCH --mem=0\n" +
				"#SBATCH --ntasks-per-node=1\n#SBATCH --cpus-per-task=16",
			rest.Submission{
				Deadline: 12 * time.Hour, TimeLimit: 15 * time.Minute, GPUsPerNode: "8", Exclusive: true, MemoryPerNode: new(int64(0)),
				TasksPerNode: 1, CPUsPerTask: 16,
			},
		},
		"short options, with and without a blank": {"#SBATCH -J a -pmain -N2 -n 3", rest.Submission{Name: "a", Partition: "main", MinNodes: 2, MaxNodes: 2, Tasks: 3}},
		"quotes and a backslash":                  {`#SBATCH --comment="a 'b" -J 'c "d' -o /a\ b`, rest.Submission{Comment: "a 'b", Name: `c "d`, Output: "/a b"}},
		"a comment behind options":                {"#SBATCH -J a # -p b", rest.Submission{Name: "a"}},
		"a # within a word":                       {"#SBATCH -J a#b", rest.Submission{Name: "a#b"}},
		"comments, empty lines and an indented line, which is none": {
			"# x\n\n  \t\n##SBATCH -J b\n# SBATCH -J c\n #SBATCH -J d\n#SBATCH -J a", rest.Submission{Name: "a"},
		},
		"lines after a command": {"#SBATCH -J a\ntrue\n#SBATCH -J b --nonsense", rest.Submission{Name: "a"}},
		"the last one counts":   {"#SBATCH -J a --requeue\n#SBATCH -J b --no-requeue", rest.Submission{Name: "b", Requeue: new(false)}},
		"nodes by name":         {"#SBATCH -w a[1-2] -x b", rest.Submission{Nodes: []string{"a1", "a2"}, Exclude: []string{"b"}}},
		"a range of nodes":      {"#SBATCH -N 1-4", rest.Submission{MinNodes: 1, MaxNodes: 4}},
		"resources":             {"#SBATCH --gres=gpu:h100:2,shard", rest.Submission{Gres: []string{"gpu:h100:2", "shard"}}},
		"a time of days":        {"#SBATCH -t 1-2:3:4", rest.Submission{TimeLimit: 26*time.Hour + 3*time.Minute + 4*time.Second}},
		"no time limit":         {"#SBATCH -t 0", rest.Submission{Unlimited: true}},
		"a limit after none":    {"#SBATCH -t UNLIMITED\n#SBATCH -t 5", rest.Submission{TimeLimit: 5 * time.Minute}},
		"memory rounded up":     {"#SBATCH --mem-per-cpu=1025K", rest.Submission{MemoryPerCPU: new(int64(2))}},
		"a signal":              {"#SBATCH --signal=B:sigusr1@90", rest.Submission{Warning: &rest.Warning{Signal: "USR1", Before: 90 * time.Second, Batch: true}}},
		"a signal by number":    {"#SBATCH --signal=10", rest.Submission{Warning: &rest.Warning{Signal: "10", Before: time.Minute}}},
	} {
		t.Run(name, func(t *testing.T) {
			test.want.Script = "#!/bin/bash\n" + test.lines + "\n"
			got, err := Parse(test.want.Script, nil)
			if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
				t.Errorf("%v, (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestWhatIsRefusedIsNamed(t *testing.T) {
	for name, test := range map[string]struct{ script, want string }{
		"an empty script":                   {" \n", "the script is empty"},
		"no interpreter":                    {"true\n", "line 1: the first line must be #! and the path of an interpreter"},
		"DOS line breaks":                   {"#!/bin/bash\r\ntrue\r\n", `the script has DOS line breaks (\r\n)`},
		"an option that is not supported":   {"#!/bin/bash\n#SBATCH -J a --array=1-3\n", "line 2: option --array is not supported"},
		"a short one":                       {"#!/bin/bash\n#SBATCH -H\n", "line 2: option -H is not supported"},
		"an abbreviation":                   {"#!/bin/bash\n#SBATCH --part=a\n", "line 2: option --part is not supported"},
		"a word that is no option":          {"#!/bin/bash\n#SBATCH x\n", `line 2: "x" is no option`},
		"a value that is missing":           {"#!/bin/bash\n#SBATCH --time\n", "line 2: --time needs a value"},
		"a value too many":                  {"#!/bin/bash\n#SBATCH --requeue=1\n", "line 2: --requeue takes no value"},
		"a quote that is not closed":        {"#!/bin/bash\n#SBATCH -J 'a\n", "line 2: a quote ' is not closed"},
		"no blank":                          {"#!/bin/bash\n#SBATCH-J a\n", "line 2: there must be a blank after #SBATCH"},
		"lines of another system":           {"#!/bin/bash\n#PBS -N a\n", "line 2: #PBS lines are not supported, write #SBATCH"},
		"a bad time":                        {"#!/bin/bash\n#SBATCH -t soon\n", `line 2: -t: "soon" is no time such as 30, 30:00, 1:30:00 or 1-12`},
		"a deadline by the clock":           {"#!/bin/bash\n#SBATCH --deadline=12:00\n", `line 2: --deadline: "12:00" is not now+N[seconds|minutes|hours|days|weeks]`},
		"a signal of the reservation":       {"#!/bin/bash\n#SBATCH --signal=R:USR1\n", "line 2: --signal: the signal is neither a number nor one of " + strings.Join(signals(), ", ")},
		"a kind of exclusive":               {"#!/bin/bash\n#SBATCH --exclusive=user\n", `line 2: --exclusive: value "user" is not supported`},
		"two ways to say memory":            {"#!/bin/bash\n#SBATCH --mem=1\n#SBATCH --mem-per-cpu=1\n", "--mem and --mem-per-cpu exclude each other"},
		"two ways to say GPUs":              {"#!/bin/bash\n#SBATCH --gres=gpu:1 --gpus-per-node=1\n", "--gpus-per-node and --gres=gpu exclude each other"},
		"two mistakes, which are both told": {"#!/bin/bash\n#SBATCH --mem=x\n#SBATCH --nodes=0\n", "line 2: --mem: \"x\" is no amount of memory such as 500M\nline 3: --nodes: \"0\" is no number from 1 to 65535"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Parse(test.script, nil); err == nil || err.Error() != test.want {
				t.Errorf("got:  %v\nwant: %s", err, test.want)
			}
		})
	}
}

// documented are the options in the table of the documentation, with the example that it has for each: "--time=0:30:00".
func documented(t testing.TB) map[string]string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "users", "activecheck.md"))
	if err != nil {
		t.Fatal(err)
	}
	examples := map[string]string{}
	for line := range strings.Lines(string(page)) {
		if cells := strings.Split(line, " | "); len(cells) == 3 && strings.HasPrefix(line, "| `-") {
			examples[strings.TrimPrefix(cells[0], "| ")] = strings.Trim(cells[2], "` |\n")
		}
	}
	return examples
}

func TestEveryOptionIsDocumentedAndSetInAllItsForms(t *testing.T) {
	examples := documented(t)
	for _, o := range options() {
		names := "`--" + o.long + "`"
		if o.short != 0 {
			names = "`-" + string(o.short) + "`, " + names
		}
		example := examples[names]
		name, value, given := strings.Cut(example, "=")
		if name != "--"+o.long || given != (o.takes == something) {
			t.Errorf("docs/users/activecheck.md has %q for %s", example, names)
			continue
		}
		forms := []string{example}
		if given {
			forms = append(forms, name+" "+value)
		}
		if given && o.short != 0 {
			forms = append(forms, "-"+string(o.short)+value, "-"+string(o.short)+" "+value)
		}
		var first rest.Submission
		for i, form := range forms {
			got, err := Parse("#!/bin/bash\n#SBATCH "+form+"\n", nil)
			got.Script = ""
			if i == 0 {
				first = got
			}
			if err != nil || !cmp.Equal(got, first) || cmp.Equal(got, rest.Submission{}) {
				t.Errorf("%s: %v, %+v", form, err, got)
			}
		}
	}
	if len(examples) != len(options()) {
		t.Errorf("docs/users/activecheck.md has %d options, there are %d", len(examples), len(options()))
	}
}

func FuzzParse(f *testing.F) {
	for _, example := range documented(f) {
		f.Add("#!/bin/bash\n#SBATCH " + example + "\ntrue\n")
	}
	f.Add("#!/bin/bash\n#SBATCH -J 'a \"b' \\ c # d\n")
	f.Add("#!/bin/bash\n#SBATCH -\xff --\n")
	f.Fuzz(func(t *testing.T, script string) {
		s, err := Parse(script, nil)
		if s.Script != script {
			t.Fatalf("the script became %q", s.Script)
		}
		if err != nil {
			if err.Error() == "" {
				t.Fatal("an error without words")
			}
			return
		}
		again, err := Parse(script+"\n#SBATCH -J after\n", nil)
		if command(script) && !strings.HasSuffix(script, "\r") && (err != nil || again.Name != s.Name) {
			t.Fatalf("a line after a command counts: %v, %q", err, again.Name)
		}
		if s.TimeLimit < 0 || s.TimeLimit > maxTime || s.Deadline < 0 || s.MinNodes < 0 || s.MaxNodes < s.MinNodes || s.Tasks < 0 {
			t.Fatalf("%+v", s)
		}
	})
}

// command reports whether a script has a line that is neither empty nor a comment.
func command(script string) bool {
	for line := range strings.Lines(script) {
		if text := strings.TrimLeft(strings.TrimRight(line, "\n"), " \t"); text != "" && text[0] != '#' {
			return true
		}
	}
	return false
}
