// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// withoutLines compares entries wherever they stood in a text.
var withoutLines = cmp.Options{cmpopts.IgnoreFields(Entry{}, "Line"), cmpopts.EquateEmpty()}

func mustWrite(t testing.TB, d *Document) string {
	t.Helper()
	b, err := d.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestBytes(t *testing.T) {
	d := New(Slurm)
	d.Comment("managed by coxswain\n\ndo not edit")
	d.Section("GENERAL")
	d.Add("ClusterName", "c1")
	d.Add("SlurmctldHost", "c-0(c-0.ns)")
	d.Add("SlurmctldHost", "c-1(c-1.ns)")
	d.Add("SlurmctldTimeout", "30")
	d.Section("LEFT EMPTY")
	d.Section("PLUGINS & PARAMETERS")
	d.Add("SlurmctldParameters", "enable_configless")
	d.Add("SlurmctldParameters", "enable_stepmgr,enable_configless")
	d.Add("LaunchParameters", "")
	d.Add("slurmctldtimeout", "60")
	d.Add("AuthAltParameters", "jwt_key=/a")
	d.Section("COMPUTE & PARTITION")
	d.Add("NodeSet", "gpu", Option{"Feature", "gpu"})
	d.Add("PartitionName", "main", Option{"Nodes", "ALL"}, Option{"State", "UP"})
	d.Add("PartitionName", "empty", Option{"Nodes", ""})
	d.Add("MailDomain", `C:\temp #1`)
	d.Add("Include", "custom_slurm.conf")
	d.Section("EXTRA CONFIG")

	want := `# managed by coxswain
# do not edit
#
### GENERAL ###
ClusterName=c1
SlurmctldHost=c-0(c-0.ns)
SlurmctldHost=c-1(c-1.ns)
SlurmctldTimeout=60
#
### PLUGINS & PARAMETERS ###
SlurmctldParameters=enable_configless,enable_stepmgr
AuthAltParameters=jwt_key=/a
#
### COMPUTE & PARTITION ###
NodeSet=gpu Feature=gpu
PartitionName=main Nodes=ALL State=UP
PartitionName=empty Nodes=""
MailDomain="C:\\temp \#1"
include custom_slurm.conf
`
	if diff := cmp.Diff(want, mustWrite(t, d)); diff != "" {
		t.Error(diff)
	}
	if v, ok := d.Get("clustername"); !ok || v != "c1" {
		t.Errorf("Get found %q, %t", v, ok)
	}
	if _, ok := d.Get("Nothing"); ok {
		t.Error("Get found nothing")
	}
}

func TestBytesRefuses(t *testing.T) {
	tests := []struct {
		name string
		add  func(*Document)
		want string
	}{
		{"a newline in a value", func(d *Document) { d.Add("MailProg", "/bin/true\nSlurmUser=root") }, "MailProg: the text has the control character U+000A"},
		{"a carriage return", func(d *Document) { d.Add("MailProg", "a\rb") }, "U+000D"},
		{"a NUL", func(d *Document) { d.Add("MailProg", "a\x00b") }, "U+0000"},
		{"a form feed, a blank to Slurm", func(d *Document) { d.Add("MailProg", "a\fb") }, "U+000C"},
		{"next line (NEL)", func(d *Document) { d.Add("MailProg", "a\u0085b") }, "U+0085"},
		{"bytes that are not UTF-8", func(d *Document) { d.Add("MailProg", "a\xffb") }, "not UTF-8"},
		{"a quote and a blank", func(d *Document) { d.Add("MailProg", `a" SlurmUser=root`) }, "double quote and a blank"},
		{"a quote at the start", func(d *Document) { d.Add("MailProg", `"a"`) }, "starts with a double quote"},
		{"a key with a blank", func(d *Document) { d.Add("Mail Prog", "a") }, `key "Mail Prog"`},
		{"an empty key", func(d *Document) { d.Add("", "a") }, "the key is empty"},
		{"a newline in an option", func(d *Document) { d.Add("PartitionName", "x", Option{"Nodes", "a\nb"}) }, "Nodes: the text has the control character"},
		{"a newline in the key of an option", func(d *Document) { d.Add("PartitionName", "x", Option{"A=b\nC", "a"}) }, "key"},
		{"options where none belong", func(d *Document) { d.Add("ClusterName", "x", Option{"A", "b"}) }, "ClusterName: it takes no options"},
		{"an include of two words", func(d *Document) { d.Add("Include", "a b") }, "name of one file"},
		{"an include of two lines", func(d *Document) { d.Add("Include", "a\nClusterName=x") }, "control character"},
		{"a newline in the name of a section", func(d *Document) { d.Section("A\nB=c"); d.Add("A", "b") }, "control character"},
		{"a carriage return in a comment", func(d *Document) { d.Comment("a\rSlurmUser=root") }, "control character"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := New(Slurm)
			d.Add("ClusterName", "c")
			tt.add(d)
			b, err := d.Bytes()
			if err == nil {
				t.Fatalf("wrote %q", b)
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error is %q, want it to say %q", err, tt.want)
			}
			if strings.Contains(err.Error(), "SlurmUser") {
				t.Errorf("the error repeats the value: %q", err)
			}
		})
	}
}

// aValue draws values full of what could break out of a line, as far as they can be written.
func aValue() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.StringMatching(`[ \t#"\\=,a-z\[\]é()/-]{0,12}`),
		rapid.String(),
		rapid.SampledFrom([]string{"DEFAULT", "none", "task/none", "jwt_key=/a", `\`, `\\`, `#`, `a"b"`, "a b\\"}),
	).Filter(func(s string) bool { return CheckValue(s) == nil })
}

func anOption() *rapid.Generator[Option] {
	return rapid.Custom(func(t *rapid.T) Option {
		return Option{rapid.StringMatching(`[A-Za-z0-9_.]{1,8}`).Draw(t, "key"), aValue().Draw(t, "value")}
	})
}

// aDocument draws documents that can be written.
func aDocument() *rapid.Generator[*Document] {
	return rapid.Custom(func(t *rapid.T) *Document {
		d := New(rapid.SampledFrom([]File{Plain, Slurm, Slurmdbd, Cgroup, Gres}).Draw(t, "file"))
		for range rapid.IntRange(0, 12).Draw(t, "entries") {
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 0:
				d.Section(rapid.StringMatching(`[A-Z][A-Z &#]{0,9}`).Draw(t, "section"))
			case 1:
				d.Comment(rapid.StringMatching(`[ #a-z=\\"]{0,12}`).Draw(t, "comment"))
			case 2:
				d.Add("include", rapid.StringMatching(`[a-z/.#\\=-]{1,9}`).Filter(func(s string) bool { return s[0] != '=' }).Draw(t, "file"))
			case 3:
				key := rapid.StringMatching(`[A-Za-z0-9_.]{1,8}`).Filter(func(s string) bool { return !strings.EqualFold(s, "include") }).Draw(t, "key")
				var options []Option
				if d.file.trait(key).options {
					options = rapid.SliceOfN(anOption(), 0, 3).Draw(t, "options")
				}
				addWritable(d, key, aValue().Draw(t, "value"), options...)
			default:
				key := rapid.SampledFrom([]string{"ClusterName", "SlurmctldParameters", "AuthAltParameters", "TaskPlugin", "Prolog",
					"PartitionName", "NodeName", "partitionname", "clustername", "Name"}).Draw(t, "known key")
				var options []Option
				if d.file.trait(key).options {
					options = rapid.SliceOfN(anOption(), 0, 3).Draw(t, "options")
				}
				addWritable(d, key, aValue().Draw(t, "value"), options...)
			}
		}
		// An unfinished section does not survive writing, by design.
		d.Section("")
		return d
	})
}

// addWritable adds a value, without its quotes if the key is a set.
func addWritable(d *Document, key, value string, options ...Option) {
	if d.file.trait(key).kind == Set {
		value = strings.ReplaceAll(value, `"`, "")
	}
	d.Add(key, value, options...)
}

func TestParseUndoesBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := aDocument().Draw(t, "document")
		b, err := d.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		again, problems := Parse(d.File(), string(b))
		if len(problems) > 0 {
			t.Fatalf("%s\n%v", b, problems)
		}
		if diff := cmp.Diff(d.Entries(), again.Entries(), withoutLines); diff != "" {
			t.Fatalf("%s\n%s", b, diff)
		}
		if diff := cmp.Diff(string(b), mustWriteRapid(t, again)); diff != "" {
			t.Fatal(diff)
		}
	})
}

func mustWriteRapid(t *rapid.T, d *Document) string {
	b, err := d.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
