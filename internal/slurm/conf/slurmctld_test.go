// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/coxswain-hpc/coxswain/test/realslurm"
)

// slurmctld has the slurmctld of a release read a slurm.conf, and returns its output. Slurm has no option to only check a file.
// But a relative path in BcastExclude ends it right after reading, with a message that quotes the value, before it touches a port
// or a state directory.
type slurmctld func(t *testing.T, text string) string

// withSlurmctlds runs a test with the slurmctlds of both releases.
func withSlurmctlds(t *testing.T, test func(t *testing.T, read slurmctld)) {
	for _, root := range realslurm.Roots(t) {
		t.Run(root.Release, func(t *testing.T) {
			box := realslurm.Open(t, root, "")
			test(t, func(t *testing.T, text string) string {
				t.Helper()
				return tried(t, box, text)
			})
		})
	}
}

// tried returns the output of the slurmctld of a box for a text with a bad BcastExclude.
func tried(t *testing.T, box *realslurm.Box, text string) string {
	t.Helper()
	if err := os.WriteFile(box.Path("tried.conf"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := box.Try("slurmctld", "-D", "-f", "/mnt/tried.conf")
	if err == nil {
		t.Fatalf("slurmctld went on behind a bad BcastExclude:\n%s", out)
	}
	return out
}

func minimal() *Document {
	d := New(Slurm)
	d.Add("ClusterName", "c")
	d.Add("SlurmctldHost", "h(127.0.0.1)")
	return d
}

func TestSlurmctldReadsWhatIsWritten(t *testing.T) {
	withSlurmctlds(t, readsWhatIsWritten)
}

func readsWhatIsWritten(t *testing.T, read slurmctld) {
	echo := regexp.MustCompile(`Invalid path for BcastExclude: (.*)`)
	for _, value := range []string{
		"plain", "a b", "a #b", "#", `a\b`, `\`, `\\`, `a\`, `a b\`, `a"b`, `a"b"`, `a\"b`, "a\tb", "a b=c SlurmUser=root", "é", "x='y z'", `\#`, `a\ \#`,
	} {
		t.Run(value, func(t *testing.T) {
			d := minimal()
			d.Add("BcastExclude", value)
			out := read(t, mustWrite(t, d))
			got := echo.FindStringSubmatch(out)
			if got == nil || got[1] != value {
				t.Errorf("wrote %q, slurmctld read %q\n%s", value, got, out)
			}
		})
	}
}

func TestSlurmctldReadsAWholeFile(t *testing.T) { withSlurmctlds(t, readsAWholeFile) }

func readsAWholeFile(t *testing.T, read slurmctld) {
	d := minimal()
	d.Comment("managed by coxswain \\")
	d.Section("GENERAL")
	d.Add("SlurmctldParameters", "enable_configless")
	d.Add("AuthAltTypes", "auth/jwt")
	d.Add("AuthAltParameters", "jwt_key=/etc/slurm/jwt_hs256.key")
	d.Add("TaskPlugin", "task/affinity,task/cgroup")
	d.Add("MaxNodeCount", "1024")
	d.Section("COMPUTE & PARTITION")
	d.Add("NodeSet", "gpu", Option{"Feature", "gpu"})
	d.Add("PartitionName", "gpu", Option{"Nodes", "gpu"}, Option{"State", "UP"})
	d.Section("EXTRA CONFIG")
	user := parsed(t, Slurm, `
# what a user might write
PartitionName=DEFAULT MaxTime=UNLIMITED
PartitionName=gpu Nodes=ALL \
   Default=YES State=UP  # replaced
NodeName=w[1-2] CPUs=1 Reason="disk \#3"
DownNodes=w1 State=DOWN Reason="a b"
SchedulerParameters = defer,bf_window=10
MailProg="/bin/my mail"
TaskPlugin=task/none
`)
	merged, problems := Merge(d, user, Owned{"ClusterName"})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	merged.Add("BcastExclude", "here")
	out := read(t, mustWrite(t, merged))
	if strings.Contains(out, "Parse error") || strings.Contains(out, "nrecognized key") || strings.Contains(out, "more than once") ||
		!strings.Contains(out, "BcastExclude: here") {
		t.Errorf("%s\n%s", out, mustWrite(t, merged))
	}
}

// TestSlurmctldKnowsTheSameGrammar holds the parser against the one it imitates: both accept or both refuse.
func TestSlurmctldKnowsTheSameGrammar(t *testing.T) { withSlurmctlds(t, knowsTheSameGrammar) }

func knowsTheSameGrammar(t *testing.T, read slurmctld) {
	for _, text := range []string{
		"MailProg=a b", "MailProg=a ResvProlog=b", "MailProg=", `MailProg="a b"c`, `MailProg=a"b c"`, "MailProg", "MailProg=a\\\n   b", "MailProg = a",
		"MailProg=a\\\nb", "PartitionName=p Nodes=ALL oops", "PartitionName=p Nodes=ALL # x", "PartitionName=p \\\n Nodes=ALL", `MailProg="a"  # b`,
	} {
		t.Run(text, func(t *testing.T) {
			_, problems := Parse(Slurm, text)
			out := read(t, mustWrite(t, minimal())+"BcastExclude=here\n"+text+"\n")
			if refused := strings.Contains(out, "Parse error"); refused != (len(problems) > 0) {
				t.Errorf("Parse: %v\nslurmctld: %s", problems, out)
			}
		})
	}
}
