// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	tests := []struct {
		name string
		text string
		want []Entry
	}{
		{"nothing is nothing", "", nil},
		{"blank lines and bare comment signs are nothing", "\n  \n#\n\t#  \n", nil},
		{"a key has the kind that slurm.conf gives it", "clustername=c\nSchedulerParameters=a,b\nPartitionName=p Nodes=ALL",
			[]Entry{
				{Kind: Scalar, Key: "clustername", Value: "c", Line: 1},
				{Kind: Set, Key: "SchedulerParameters", Value: "a,b", Line: 2},
				{Kind: Repeated, Key: "PartitionName", Value: "p", Options: []Option{{"Nodes", "ALL"}}, Line: 3},
			}},
		{"blanks around the equals sign do not count", "  ClusterName \t=  c  ", []Entry{{Key: "ClusterName", Value: "c", Line: 1}}},
		{"what follows = is the value, whatever it looks like", "MailProg= ResvProlog=/x", []Entry{{Key: "MailProg", Value: "ResvProlog=/x", Line: 1}}},
		{"quotes keep blanks", `MailProg="/bin/a b"`, []Entry{{Key: "MailProg", Value: "/bin/a b", Line: 1}}},
		{"quotes may be empty", `PartitionName=p Nodes=""`, []Entry{{Kind: Repeated, Key: "PartitionName", Value: "p", Options: []Option{{"Nodes", ""}}, Line: 1}}},
		{"a quote inside a value is a letter", `MailProg=a"b`, []Entry{{Key: "MailProg", Value: `a"b`, Line: 1}}},
		{"a comment ends the line", "ClusterName=c # x=y\n", []Entry{{Key: "ClusterName", Value: "c", Line: 1}}},
		{"a backslash makes a comment sign literal", `MailProg="a \#1"`, []Entry{{Key: "MailProg", Value: "a #1", Line: 1}}},
		{"two backslashes are one, and protect nothing", `MailProg=a\\#b`, []Entry{{Key: "MailProg", Value: `a\`, Line: 1}}},
		{"a backslash at the end joins the next line as it is", "SchedulerParameters=a,\\\nb\nClusterName=c",
			[]Entry{{Kind: Set, Key: "SchedulerParameters", Value: "a,b", Line: 1}, {Key: "ClusterName", Value: "c", Line: 3}}},
		{"blanks and a comment may follow that backslash", "PartitionName=p \\ # why\r\n Nodes=ALL\r\n",
			[]Entry{{Kind: Repeated, Key: "PartitionName", Value: "p", Options: []Option{{"Nodes", "ALL"}}, Line: 1}}},
		{"a comment does not continue", "# a \\\nClusterName=c", []Entry{{Kind: Comment, Value: `a \`, Line: 0}, {Key: "ClusterName", Value: "c", Line: 2}}},
		{"a backslash at the very end continues nothing", "ClusterName=c\\", []Entry{{Key: "ClusterName", Value: "c", Line: 1}}},
		{"backslashes and blanks alone are nothing", `\ \`, nil},
		{"include has its own form", "include custom_slurm.conf\n INCLUDE\tx", []Entry{
			{Kind: Include, Key: "include", Value: "custom_slurm.conf", Line: 1}, {Kind: Include, Key: "include", Value: "x", Line: 2}}},
		{"a banner is a section, other comments are kept", "# hello\n#\n### GENERAL ###\nClusterName=c", []Entry{
			{Kind: Comment, Value: "hello"}, {Kind: Section, Value: "GENERAL"}, {Key: "ClusterName", Value: "c", Line: 4}}},
		{"a scalar that stands twice has its last value", "ClusterName=a\nCLUSTERNAME=b", []Entry{{Key: "ClusterName", Value: "b", Line: 2}}},
		{"a set that stands twice is united", "DebugFlags=a\nDebugFlags=B,A", []Entry{{Kind: Set, Key: "DebugFlags", Value: "a,B", Line: 2}}},
		{"an unknown key passes through", "Future=1", []Entry{{Key: "Future", Value: "1", Line: 1}}},
		{"with its options", "Future=1 A=b", []Entry{{Kind: Repeated, Key: "Future", Value: "1", Options: []Option{{"A", "b"}}, Line: 1}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d, problems := Parse(Slurm, tt.text)
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			if diff := cmp.Diff(tt.want, d.Entries(), withoutLines[1]); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParseReportsTheLine(t *testing.T) {
	tests := []struct {
		name string
		file File
		text string
		want string
	}{
		{"a key without a value", Slurm, "ClusterName=c\n\nPartitionNme", `line 3: "PartitionNme": this is not Key=Value`},
		{"the first of several joined lines", Slurm, "A=b\nCluster\\\nName\n", `line 2: "ClusterName": this is not Key=Value`},
		{"an empty value", Slurm, "ClusterName=", `line 1: ClusterName: it has no value; write "" for an empty one`},
		{"two keys on a line", Slurm, "SlurmUser=slurm SlurmdUser=root", "line 1: SlurmUser: there is more text behind its value; put every key on a line of its own, and quotes around a value with blanks"},
		{"a value with blanks and no quotes", Slurmdbd, "StoragePass=top secret", "line 1: StoragePass: the text behind the value of StoragePass is not Key=Value; a value with blanks needs quotes around all of it"},
		{"an option without a value", Slurm, "PartitionName=p Nodes=ALL Hidden", "line 1: PartitionName: the text behind the value of Nodes is not Key=Value; a value with blanks needs quotes around all of it"},
		{"an open quote", Slurm, `MailProg="a b`, "line 1: MailProg: the quote is not closed"},
		{"a quote that a comment sign opens", Slurm, `DownNodes=w1 Reason="disk #3"`, `line 1: Reason: the quote is not closed; '#' starts a comment inside quotes too, write \# instead`},
		{"text behind a quote", Slurm, `MailProg="a"b`, "line 1: MailProg: there is text behind the closing quote; quotes go around all of a value"},
		{"a quote in a list", Slurm, `DebugFlags=a,b"`, "line 1: DebugFlags: the items of a list cannot have double quotes"},
		{"another operator", Slurm, "PrologFlags+=Alloc", `line 1: "PrologFlags+=Alloc": the operator += is not supported, only =`},
		{"include with an equals sign", Slurm, "include=x", "line 1: include: a file is included by include FILE, without an equals sign"},
		{"include of two files", Slurm, "include x y", "line 1: include: it takes the name of one file, without blanks and quotes"},
		{"a control character", Slurm, "ClusterName=a\x00b", "line 1: the text has the control character U+0000"},
		{"a carriage return inside a line", Slurm, "ClusterName=a\rSlurmUser=root", "line 1: the text has the control character U+000D"},
		{"bytes that are not UTF-8", Slurm, "ClusterName=\xff", "line 1: the text is not UTF-8"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d, problems := Parse(tt.file, tt.text)
			if len(problems) != 1 {
				t.Fatalf("problems are %v, entries %v", problems, d.Entries())
			}
			if got := problems[0].Error(); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if strings.Contains(problems[0].Error(), "secret") {
				t.Error("the message repeats a secret")
			}
		})
	}
}

func TestParseGoesOnBehindAProblem(t *testing.T) {
	d, problems := Parse(Slurm, "oops\nClusterName=c\noops")
	if len(problems) != 2 || len(d.Entries()) != 1 {
		t.Errorf("%v, %v", problems, d.Entries())
	}
}

func TestGresLinesAllCount(t *testing.T) {
	text := "AutoDetect=nvml\nName=gpu File=/dev/nvidia0\nName=gpu File=/dev/nvidia1\nNodeName=w1 Name=gpu File=/dev/nvidia[0-3]\n"
	d, problems := Parse(Gres, text)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if diff := cmp.Diff(text, mustWrite(t, d)); diff != "" {
		t.Error(diff)
	}
}

func TestParseOptions(t *testing.T) {
	got, err := ParseOptions("MaxTime=UNLIMITED State=UP  # always\n")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Option{{"MaxTime", "UNLIMITED"}, {"State", "UP"}}, got); diff != "" {
		t.Error(diff)
	}
	for _, bad := range []string{"State=UP\nSlurmUser=root", "State", "State=", `A="b`, "A=\x00"} {
		if got, err := ParseOptions(bad); err == nil {
			t.Errorf("%q gives %v", bad, got)
		}
	}
	if got, err := ParseOptions(" "); err != nil || len(got) != 0 {
		t.Errorf("a blank text gives %v, %v", got, err)
	}
}

func TestUnknownSuggestsWhatWasMeant(t *testing.T) {
	d, _ := Parse(Slurm, "ClusterName=c\nPartitionNme=p Nodes=ALL\nZzz=1\nslurmctldtimeout=3\ninclude x")
	var got []string
	for _, p := range d.Unknown("") {
		got = append(got, p.Error())
	}
	want := []string{
		"line 2: PartitionNme: slurm.conf has no key of this name that the operator knows; did you mean PartitionName?",
		"line 3: Zzz: slurm.conf has no key of this name that the operator knows",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"", "ClusterName=c\n", "PartitionName=p Nodes=ALL State=UP # x\n", `A="b c"` + "\nB=c\\\nd\n", "include x\n", "### A ###\nB=c",
		"# x \\\nA=b", `A="\#"`, `A=\\#`, "DownNodes=w1 Reason=\"disk #3\"", "A=\r\n", "TaskPlugin=task/none\nTaskPlugin=task/cgroup",
		"Include \\\n\\\n=", "####", "### ###", "#\t## A ###", "A=b C= \\", "Prolog=\xc2\x85",
	} {
		f.Add(uint8(Slurm), s)
		f.Add(uint8(Gres), s)
	}
	f.Fuzz(func(t *testing.T, file uint8, text string) {
		d, _ := Parse(File(file%5), text)
		b, err := d.Bytes()
		if err != nil {
			t.Fatalf("what was parsed cannot be written: %v", err)
		}
		again, problems := Parse(d.File(), string(b))
		if len(problems) > 0 {
			t.Fatalf("what was written cannot be parsed:\n%s%v", b, problems)
		}
		if diff := cmp.Diff(d.Entries(), again.Entries(), withoutLines); diff != "" {
			t.Fatalf("%s\n%s", b, diff)
		}
		d.Unknown("")
	})
}

func TestUnknownLooksAtOptionsAndOtherFiles(t *testing.T) {
	tests := []struct {
		name string
		file File
		text string
		want []string
	}{
		{"an option of a partition", Slurm, "PartitionName=p Nodes=ALL maxtime=1 Stat=UP SomethingNew=1",
			[]string{
				"line 1: PartitionName=p Stat: PartitionName has no option of this name that the operator knows; did you mean State?",
				"line 1: PartitionName=p SomethingNew: PartitionName has no option of this name that the operator knows",
			}},
		{"an option of a node", Slurm, "NodeName=n CPU=2 Feature=a", []string{"line 1: NodeName=n CPU: NodeName has no option of this name that the operator knows; did you mean CPUs?"}},
		{"cgroup.conf", Cgroup, "CgroupPlugin=cgroup/v2\nConstrainRamSpac=yes", []string{"line 2: ConstrainRamSpac: cgroup.conf has no key of this name that the operator knows; did you mean ConstrainRAMSpace?"}},
		{"gres.conf", Gres, "AutoDetect=nvidia\nName=gpu Fil=/dev/x\nNodeName=a Name=gpu File=/dev/y", []string{"line 2: Name=gpu Fil: Name has no option of this name that the operator knows; did you mean File?"}},
		{"a file whose keys nobody lists", Plain, "Whatever=1", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, p := range parsed(t, tt.file, tt.text).Unknown("") {
				got = append(got, p.Error())
			}
			slices.Sort(got)
			slices.Sort(tt.want)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCompareReleases(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{{"26.05.5", "26.05", 0}, {"26.11.0", "26.05", 1}, {"25.11.9", "26.05", -1}, {"27.05", "26.11.1", 1}, {"", "26.05", -1}} {
		if got := CompareReleases(tt.a, tt.b); got != tt.want {
			t.Errorf("comparing %q with %q gives %d", tt.a, tt.b, got)
		}
	}
}
