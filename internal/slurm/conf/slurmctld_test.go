// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// slurmctld runs the slurmctld of the machine on a slurm.conf until it has read it, and returns what it says. Slurm has no
// option to only check a file; but a relative path in BcastExclude ends it right after reading, with a message that
// quotes the value, before it touches a port or a state directory. A Slurm that is not installed where it was built for
// needs the environment variable SLURM_PLUGIN_DIR.
func slurmctld(t *testing.T, text string) string {
	t.Helper()
	binary, err := exec.LookPath("slurmctld")
	if err != nil {
		t.Skip("no slurmctld in PATH")
	}
	if dir := os.Getenv("SLURM_PLUGIN_DIR"); dir != "" {
		text += "\nPluginDir=" + dir + "\n"
	}
	file := filepath.Join(t.TempDir(), "slurm.conf")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, binary, "-D", "-f", file).CombinedOutput()
	if err == nil || ctx.Err() != nil {
		t.Fatalf("slurmctld went on behind a bad BcastExclude: %v\n%s", err, out)
	}
	return string(out)
}

func minimal() *Document {
	d := New(Slurm)
	d.Add("ClusterName", "c")
	d.Add("SlurmctldHost", "h(127.0.0.1)")
	return d
}

func TestSlurmctldReadsWhatIsWritten(t *testing.T) {
	echo := regexp.MustCompile(`Invalid path for BcastExclude: (.*)`)
	for _, value := range []string{
		"plain", "a b", "a #b", "#", `a\b`, `\`, `\\`, `a\`, `a b\`, `a"b`, `a"b"`, `a\"b`, "a\tb", "a b=c SlurmUser=root", "é", "x='y z'", `\#`, `a\ \#`,
	} {
		t.Run(value, func(t *testing.T) {
			d := minimal()
			d.Add("BcastExclude", value)
			out := slurmctld(t, mustWrite(t, d))
			got := echo.FindStringSubmatch(out)
			if got == nil || got[1] != value {
				t.Errorf("wrote %q, slurmctld read %q\n%s", value, got, out)
			}
		})
	}
}

func TestSlurmctldReadsAWholeFile(t *testing.T) {
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
	out := slurmctld(t, mustWrite(t, merged))
	if strings.Contains(out, "Parse error") || strings.Contains(out, "nrecognized key") || strings.Contains(out, "more than once") ||
		!strings.Contains(out, "BcastExclude: here") {
		t.Errorf("%s\n%s", out, mustWrite(t, merged))
	}
}

// TestSlurmctldKnowsTheSameGrammar holds the parser against the one it imitates: both accept or both refuse.
func TestSlurmctldKnowsTheSameGrammar(t *testing.T) {
	for _, text := range []string{
		"MailProg=a b", "MailProg=a ResvProlog=b", "MailProg=", `MailProg="a b"c`, `MailProg=a"b c"`, "MailProg", "MailProg=a\\\n   b", "MailProg = a",
		"MailProg=a\\\nb", "PartitionName=p Nodes=ALL oops", "PartitionName=p Nodes=ALL # x", "PartitionName=p \\\n Nodes=ALL", `MailProg="a"  # b`,
	} {
		t.Run(text, func(t *testing.T) {
			_, problems := Parse(Slurm, text)
			out := slurmctld(t, mustWrite(t, minimal())+"BcastExclude=here\n"+text+"\n")
			if refused := strings.Contains(out, "Parse error"); refused != (len(problems) > 0) {
				t.Errorf("Parse: %v\nslurmctld: %s", problems, out)
			}
		})
	}
}
