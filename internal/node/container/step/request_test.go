// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-hpc/coxswain/internal/node/image/mount"
)

func records(lines ...string) string { return strings.Join(lines, "\x00") + "\x00" }

func TestARequestHasWhatThePluginAsksFor(t *testing.T) {
	got, err := Read(strings.NewReader(records(
		"image=nvcr.io#a/b:1", "mounts=/data,tmpfs:/scratch", "workdir=/w", "name=n:exec", "save=/s", "mount_home=yes", "remap_root=no", "entrypoint=yes",
		"entrypoint_log=yes", "writable=no", "env=A,B", "unshare=net,uts", "job=12", "step=4294967291", "tasks=3", "uid=1000", "gid=2000", "scope=job",
		"importer=/i", "script=/var/spool/slurmd/job00012/slurm_script", "directory=/home/a b", ":A=1", ":B=x=y\nz", ":C",
	)))
	if err != nil {
		t.Fatal(err)
	}
	want := &Request{
		Image: "nvcr.io#a/b:1", Workdir: "/w", Name: "n:exec", Save: "/s", MountHome: new(true), RemapRoot: new(false), Entrypoint: new(true), EntrypointLog: true,
		Writable: new(false), Env: []string{"A", "B"}, Unshare: []string{"net", "uts"}, Job: 12, Step: BatchStep, Tasks: 3, UID: 1000, GID: 2000, JobScope: true,
		Importer: "/i", Script: "/var/spool/slurmd/job00012/slurm_script", Directory: "/home/a b", Environment: []string{"A=1", "B=x=y\nz", "C"},
		Mounts: []mount.Mount{
			{Kind: mount.Bind, Source: "/data", Target: "/data", Flags: []string{"x-create=auto", "rbind"}},
			{Kind: mount.Tmpfs, Target: "/scratch", Flags: []string{"x-create=dir"}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestARequestThatCannotBeReadIsRefusedWithASentence(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"an unknown key":       {records("colour=blue"), `the request has the unknown key "colour": plugin and program are of different releases`},
		"no number":            {records("job=x"), `the request has no number "job"`},
		"a number too large":   {records("uid=4294967296"), `the request has no number "uid"`},
		"an unknown namespace": {records("unshare=net,pid"), "--container-unshare: unknown namespace 'pid'"},
		"no name":              {records("env=A,,B"), `--container-env: "" is no name of a variable`},
		"a mount of nothing":   {records("mounts=:"), "--container-mounts"},
		"the end missing":      {"image=a\x00job=1", ErrCut.Error()},
	} {
		if _, err := Read(strings.NewReader(test.text)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %s", name, err, test.want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(records("image=a", "mounts=/a:/b:ro", ":A=1"))
	f.Add("env=A\x00unshare=net\x00job=1")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := Read(strings.NewReader(text))
		if (r == nil) == (err == nil) {
			t.Fatalf("%v, %v", r, err)
		}
		if cut := text != "" && !strings.HasSuffix(text, "\x00"); cut && err == nil || errors.Is(err, ErrCut) && !cut {
			t.Errorf("cut off: %t, but %v", cut, err)
		}
	})
}

func TestARefusalIsOneRecord(t *testing.T) {
	if got := string(Refusal(errors.New("a\x00b"))); got != "Eab\x00" {
		t.Errorf("%q", got)
	}
}

func TestAResultHasARecordForEachThingThatATaskDoes(t *testing.T) {
	r := Result{PID: 7, Namespaces: []string{"net"}, Directory: "/w", Capable: true, Set: []string{"A=1", "B=\x00"}, Unset: []string{"LANG"}}
	if got, want := string(r.Records()), records("P7", "Nnet", "W/w", "C", "-LANG", "+A=1", "R"); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestVariablesOfTheImageWinButThoseThatTheJobKeeps(t *testing.T) {
	job := ParseEnvironment([]string{"PATH=/usr/bin", "LANG=de", "LC_ALL=C", "CUDA=1", "SLURM_JOB_ID=3", "SAME=x", "PATH=/second", "=none", "bare"})
	image := ParseEnvironment([]string{"PATH=/opt/bin", "CUDA=2", "SAME=x", "NEW=y"})
	set, unset := Overlay(job, image, []string{"CUDA", "NEW", "LC_ALL"}, "/home/a")
	if diff := cmp.Diff([]string{"HOME=/home/a", "NEW=y", "PATH=/opt/bin"}, set); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"LANG"}, unset); diff != "" {
		t.Error(diff)
	}
	if len(image) != 4 {
		t.Errorf("the image's variables were changed: %v", image)
	}
}
