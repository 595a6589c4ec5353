// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNodeConf(t *testing.T) {
	tests := []struct {
		name, text, want string
	}{
		{"nothing is nothing", " \n ", ""},
		{"keys are sorted and written as Slurm does", "weight=1 gres=gpu:8 realmemory=1000", "Gres=gpu:8 RealMemory=1000 Weight=1"},
		{"Feature and Features are one", "Feature=a Features=b feature=a,c", "Features=a,b,c"},
		{"repeated lists are joined", "Gres=gpu:1 Gres=nic:2", "Gres=gpu:1,nic:2"},
		{"commas in parentheses are part of an item", "Gres=gpu:2(S:0,1),nic:1 Gres=gpu:2(S:0,1)", "Gres=gpu:2(S:0,1),nic:1"},
		{"a value may contain equals signs", "Extra=a=b", "Extra=a=b"},
		{"the same value twice is once", "Weight=1 weight=1", "Weight=1"},
		{"unknown keys keep their case", "fooBar=1", "fooBar=1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, problems := ParseNodeConf(tt.text)
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			got, err := c.Text()
			if err != nil || got != tt.want {
				t.Errorf("got %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

func TestNodeConfReports(t *testing.T) {
	tests := []struct {
		name, text, want string
	}{
		{"a word without an equals sign", "Gres=gpu:8\n  oops", `line 2: "oops" is not Key=Value`},
		{"an empty value", "Gres=", "line 1: Gres: it has no value"},
		{"a list of nothing", "Features=,", "line 1: Features: it has no value"},
		{"an empty key", "=x", "line 1: the key is empty"},
		{"a key with other characters", "a'b=x", `line 1: key "a'b" has a character that is not a letter, a digit, '_' or '.'`},
		{"two values for one thing", "Weight=1 WEIGHT=2", "line 1: WEIGHT: it is given twice with different values"},
		{"a single quote, which would end the shell's", "Features=a';reboot;'", `line 1: Features: the value has the character '\'', which cannot be passed to slurmd safely`},
		{"a variable, which the kubelet would replace", "Features=$(TOKEN)", `line 1: Features: the value has the character '$', which cannot be passed to slurmd safely`},
		{"a control character", "Features=a\x00b", "line 1: Features: the text has the control character U+0000"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, problems := ParseNodeConf(tt.text)
			if len(problems) != 1 {
				t.Fatalf("problems are %v", problems)
			}
			if got := problems[0].Error(); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestNodeConfMerge(t *testing.T) {
	var base NodeConf
	base.Add("Features", "gpu")
	base.Add("RealMemory", "1000")
	base.Add("Port", "6818")
	user, _ := ParseNodeConf("feature=x,gpu RealMemory=2000 Port=1 NodeName=evil Gres=gpu:1")

	got, problems := base.Merge(user, Owned{"port", "nodename"})
	text, err := got.Text()
	if err != nil {
		t.Fatal(err)
	}
	if want := "Features=gpu,x Gres=gpu:1 Port=6818 RealMemory=2000"; text != want {
		t.Errorf("got %q, want %q", text, want)
	}
	want := []Problem{
		{0, "NodeName", "it is set by the operator and cannot be set to something else; remove the line"},
		{0, "Port", "it is set by the operator and cannot be set to something else; remove the line"},
	}
	if diff := cmp.Diff(want, problems); diff != "" {
		t.Error(diff)
	}
	if v, _ := base.Get("realmemory"); v != "1000" {
		t.Error("Merge changed its receiver")
	}
}

func TestNodeConfTextRefusesWhatAddDidNotCheck(t *testing.T) {
	for _, bad := range []Option{{"Features", "a b"}, {"Features", "'"}, {"Fea tures", "a"}, {"Weight", ""}} {
		var c NodeConf
		c.Add(bad.Key, bad.Value)
		if text, err := c.Text(); err == nil {
			t.Errorf("wrote %q", text)
		}
	}
}

func FuzzParseNodeConf(f *testing.F) {
	f.Add("Gres=gpu:8 Feature=a\nfeatures=b")
	f.Add("a=b'c x= =y é=1 Gres=),(,")
	f.Fuzz(func(t *testing.T, text string) {
		c, problems := ParseNodeConf(text)
		out, err := c.Text()
		if err != nil {
			t.Fatalf("what was parsed cannot be written: %v", err)
		}
		if strings.ContainsAny(out, "'\n\"\\$`#\x00") {
			t.Fatalf("wrote %q", out)
		}
		again, more := ParseNodeConf(out)
		if len(more) > 0 {
			t.Fatalf("%q: %v (after %v)", out, more, problems)
		}
		if twice, err := again.Text(); err != nil || twice != out {
			t.Fatalf("%q became %q, %v", out, twice, err)
		}
	})
}

func TestGresNames(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string
	}{
		{"none", "Weight=1", nil},
		{"with a type and a number", "Gres=gpu:h100:8", []string{"gpu"}},
		{"several, in one or in two pairs", "Gres=nic:2,gpu:2(S:0,1) Gres=gpu:a100:4", []string{"gpu", "nic"}},
		{"without a number", "Gres=GPU,license", []string{"gpu", "license"}},
		{"what is no name", "Gres=:4,a/b:1", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, _ := ParseNodeConf(tt.text)
			if got := c.GresNames(); !slices.Equal(got, tt.want) {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}
