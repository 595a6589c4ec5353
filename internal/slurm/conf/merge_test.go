// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func parsed(t testing.TB, file File, text string) *Document {
	t.Helper()
	d, problems := Parse(file, text)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return d
}

func TestMerge(t *testing.T) {
	tests := []struct {
		name             string
		base, user, want string
	}{
		{"nothing changes nothing", "A=1\n", "", "A=1\n"},
		{"a scalar replaces the one in base in its place, under its name", "ReturnToService=2\nMailProg=a\n", "returntoservice=1\n", "ReturnToService=1\nMailProg=a\n"},
		{"a new scalar is appended", "MailProg=a\n", "MaxArraySize=1\n", "MailProg=a\nMaxArraySize=1\n"},
		{"a set unites, base first", "SlurmctldParameters=enable_configless,b\n", "SlurmctldParameters=c,ENABLE_CONFIGLESS\n", "SlurmctldParameters=enable_configless,b,c\n"},
		{"paths in sets keep their case", "AuthInfo=use_client_ids\n", "AuthInfo=socket=/Run/X\n", "AuthInfo=use_client_ids,socket=/Run/X\n"},
		{"an item with a value replaces the one of the same name", "SchedulerParameters=bf_window=1,defer\n", "SchedulerParameters=BF_WINDOW=2\n", "SchedulerParameters=BF_WINDOW=2,defer\n"},
		{"one consumable resource excludes the others", "SelectTypeParameters=CR_Core_Memory,CR_LLN\n", "SelectTypeParameters=CR_CPU\n", "SelectTypeParameters=CR_CPU,CR_LLN\n"},
		{"task/none excludes the other task plugins", "TaskPlugin=task/cgroup,task/affinity\n", "TaskPlugin=task/none\n", "TaskPlugin=task/none\n"},
		{"task/none is excluded by the other task plugins", "TaskPlugin=task/none\n", "TaskPlugin=task/cgroup\n", "TaskPlugin=task/cgroup\n"},
		{"a partition is added", "PartitionName=a Nodes=ALL\n", "PartitionName=b Nodes=x\n", "PartitionName=a Nodes=ALL\nPartitionName=b Nodes=x\n"},
		{"a partition of the same name replaces the generated one as a whole", "PartitionName=a Nodes=ALL State=UP\nMailProg=m\n", "PartitionName=a Nodes=x\n", "MailProg=m\nPartitionName=a Nodes=x\n"},
		{"names of partitions have a case", "PartitionName=a Nodes=ALL\n", "partitionname=A Nodes=x\n", "PartitionName=a Nodes=ALL\npartitionname=A Nodes=x\n"},
		{"a default line of the user stays before the lines it is meant for", "PartitionName=DEFAULT State=UP\nPartitionName=a Nodes=ALL\n", "PartitionName=DEFAULT MaxTime=5\nPartitionName=a Nodes=x\n",
			"PartitionName=DEFAULT State=UP\nPartitionName=DEFAULT MaxTime=5\nPartitionName=a Nodes=x\n"},
		{"what base says already stays where it is", "PartitionName=a Nodes=ALL\nProlog=p\ninclude x\nMailProg=m\n", "Prolog=p\ninclude x\npartitionname=a nodes=ALL\n", "PartitionName=a Nodes=ALL\nProlog=p\ninclude x\nMailProg=m\n"},
		{"scripts are added", "Prolog=a\n", "Prolog=b\nEpilog=c\n", "Prolog=a\nProlog=b\nEpilog=c\n"},
		{"comments and sections of the user are dropped", "A=1\n", "# x\n### Y ###\nB=2\n", "A=1\nB=2\n"},
		{"a section whose only line is replaced vanishes", "#\n### P ###\nPartitionName=a Nodes=ALL\n#\n### Q ###\nMailProg=m\n", "PartitionName=a Nodes=x\n", "#\n### Q ###\nMailProg=m\nPartitionName=a Nodes=x\n"},
		{"two lines of the user do not replace each other", "", "DownNodes=a State=DOWN\nDownNodes=a State=DRAIN\n", "DownNodes=a State=DOWN\nDownNodes=a State=DRAIN\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			base, user := parsed(t, Slurm, tt.base), parsed(t, Slurm, tt.user)
			before := mustWrite(t, base) + mustWrite(t, user)

			got, problems := Merge(base, user, nil)
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			if diff := cmp.Diff(tt.want, mustWrite(t, got)); diff != "" {
				t.Error(diff)
			}
			if mustWrite(t, base)+mustWrite(t, user) != before {
				t.Error("an argument changed")
			}
		})
	}
}

func TestMergeOpensTheCallersSection(t *testing.T) {
	base := parsed(t, Slurm, "MailProg=a\n")
	base.Section("EXTRA CONFIG")
	for user, want := range map[string]string{
		"":               "MailProg=a\n",
		"MailProg=b":     "MailProg=b\n",
		"MaxArraySize=1": "MailProg=a\n#\n### EXTRA CONFIG ###\nMaxArraySize=1\n",
	} {
		got, _ := Merge(base, parsed(t, Slurm, user), nil)
		if diff := cmp.Diff(want, mustWrite(t, got)); diff != "" {
			t.Error(diff)
		}
	}
}

func TestMergeOfGresLinesOnlyAdds(t *testing.T) {
	got, _ := Merge(parsed(t, Gres, "AutoDetect=nvidia\nName=gpu File=/a\n"), parsed(t, Gres, "Name=gpu File=/b\nName=gpu File=/a\nAutoDetect=off\n"), nil)
	if diff := cmp.Diff("AutoDetect=off\nName=gpu File=/a\nName=gpu File=/b\n", mustWrite(t, got)); diff != "" {
		t.Error(diff)
	}
}

func TestMergeRefusesWhatIsOwned(t *testing.T) {
	const base = "ClusterName=c\nSlurmctldHost=h\nAuthAltTypes=auth/jwt\nAuthAltParameters=jwt_key=/key,x\n"
	owned := Owned{"clustername", "SlurmctldHost", "SlurmctldPort", "AuthAltTypes", "AuthAltParameters:jwt_key", "Include"}
	tests := []struct {
		name     string
		user     string
		want     string
		problems []Problem
	}{
		{"equal values are accepted silently", "ClusterName=c\nSlurmctldHost=h\nAuthAltTypes=auth/jwt\nAuthAltParameters=jwt_key=/key\n", base, nil},
		{"another value is refused and left out", "\nCLUSTERNAME=evil\nMailProg=m\n", base + "MailProg=m\n",
			[]Problem{{2, "CLUSTERNAME", "it is set by the operator and cannot be set to something else; remove the line"}}},
		{"the last of two values counts", "ClusterName=c\nClusterName=evil\n", base,
			[]Problem{{2, "ClusterName", "it is set by the operator and cannot be set to something else; remove the line"}}},
		{"a repeated key is owned as a whole", "SlurmctldHost=h2\n", base,
			[]Problem{{1, "SlurmctldHost", "it is set by the operator and cannot be set to something else; remove the line"}}},
		{"an owned key that base does not set is refused", "SlurmctldPort=1\n", base,
			[]Problem{{1, "SlurmctldPort", "it is set by the operator and cannot be set to something else; remove the line"}}},
		{"a set may be owned", "AuthAltTypes=auth/none\n", base,
			[]Problem{{1, "AuthAltTypes", "it is set by the operator and cannot be set to something else; remove the line"}}},
		{"one item of a set may be owned", "AuthAltParameters=y,JWT_KEY=/tmp/mine\n", "ClusterName=c\nSlurmctldHost=h\nAuthAltTypes=auth/jwt\nAuthAltParameters=jwt_key=/key,x,y\n",
			[]Problem{{1, "AuthAltParameters", "JWT_KEY is set by the operator and cannot be set to something else; remove it"}}},
		{"includes can be owned", "include /tmp/x\n", base,
			[]Problem{{1, "include", "it is set by the operator and cannot be set to something else; remove the line"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, problems := Merge(parsed(t, Slurm, base), parsed(t, Slurm, tt.user), owned)
			if diff := cmp.Diff(tt.problems, problems); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tt.want, mustWrite(t, got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestMergeKeepsItsPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base, user := aDocument().Draw(t, "base"), aDocument().Draw(t, "user")
		base.file, user.file = Slurm, Slurm
		base, _ = Parse(Slurm, mustWriteAny(base))
		user, _ = Parse(Slurm, mustWriteAny(user))
		owned := Owned{"ClusterName", "AuthAltParameters"}

		merged, _ := Merge(base, user, owned)
		b := mustWriteRapid(t, merged)
		again, problems := Parse(Slurm, b)
		if len(problems) > 0 || mustWriteRapid(t, again) != b {
			t.Fatalf("the result is not read back:\n%s\n%v", b, problems)
		}
		for _, key := range owned {
			want, had := base.Get(key)
			if got, has := merged.Get(key); got != want || has != had {
				t.Fatalf("%s was %q and is %q", key, want, got)
			}
		}
		for _, e := range base.Entries() {
			if _, ok := merged.Get(e.Key); e.Key != "" && !ok {
				t.Fatalf("%s got lost", e.Key)
			}
		}
		if unchanged, _ := Merge(base, New(Slurm), owned); mustWriteRapid(t, unchanged) != mustWriteRapid(t, base) {
			t.Fatal("merging nothing changes something")
		}
	})
}

// mustWriteAny writes what can be written of d under the rules of its file.
func mustWriteAny(d *Document) string {
	out := New(d.file)
	for _, e := range d.entries {
		one := New(d.file)
		one.push(e)
		if _, err := one.Bytes(); err == nil {
			out.push(e)
		}
	}
	b, err := out.Bytes()
	if err != nil {
		return ""
	}
	return string(b)
}
