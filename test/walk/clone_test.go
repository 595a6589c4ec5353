// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var buildImages = flag.Bool("walk.images", false, "build the images of a clean clone, which takes minutes")

// cleanClone copies the files that git knows: nothing is in bin that an earlier target has left.
func cleanClone(t *testing.T) Repository {
	t.Helper()
	from, err := FindRepository()
	if err != nil {
		t.Fatal(err)
	}
	clone := Repository(t.TempDir())
	copied := exec.CommandContext(t.Context(), "bash", "-c",
		`set -o pipefail; cd "$0" && git ls-files -z | tar -cf - --ignore-failed-read --null -T - | tar -xf - -C "$1"`, string(from), string(clone))
	if out, err := copied.CombinedOutput(); err != nil {
		t.Fatalf("copying what git has: %v: %s", err, out)
	}
	return clone
}

// programsOf returns what the images have to have by a list: images/operator/programs or images/programs.
func programsOf(t *testing.T, r Repository, list ...string) []string {
	t.Helper()
	text, err := os.ReadFile(r.Path(append([]string{"images"}, list...)...))
	if err != nil {
		t.Fatal(err)
	}
	names := strings.Fields(string(text))
	if len(names) == 0 {
		t.Errorf("%v names no programs", list)
	}
	return names
}

func TestTheDemoBuildsEveryProgramOfTheImages(t *testing.T) {
	t.Parallel()
	clone := cleanClone(t)
	out, err := clone.run(t.Context(), nil, "make", append([]string{"--dry-run", "--no-print-directory"}, programs(true)...)...)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(programsOf(t, clone, "operator", "programs"), programsOf(t, clone, "programs")...) {
		if !strings.Contains(out, " -o bin/"+name+" ./cmd/"+name+"\n") {
			t.Errorf("%s is not built:\n%s", name, out)
		}
	}
}

// TestACleanCloneMakesTheImages goes the demo's way up to the images, and starts what is in that of the operator.
func TestACleanCloneMakesTheImages(t *testing.T) {
	if !*buildImages {
		t.Skip("takes minutes; run by \"make clean-clone\"")
	}
	clone := cleanClone(t)
	p := NewProgress(os.Stderr)
	if err := BuildPrograms(t.Context(), clone, p, true); err != nil {
		t.Fatal(err)
	}
	images := Images{Registry: LocalRegistry, Tag: "clean-clone"}
	archives, err := images.build(t.Context(), clone, p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, a := range archives {
			_, _ = os.Remove(a), os.Remove(a+".inputs")
		}
	})
	for _, test := range []struct {
		archive, image, dir string
		names               []string
	}{
		{"operator", "operator", "usr/bin", programsOf(t, clone, "operator", "programs")},
		{"slurm", "slurmd", "usr/local/bin", programsOf(t, clone, "programs")},
	} {
		root := t.TempDir()
		if err := images.unpack(t.Context(), images.Archive(test.archive), root, test.image); err != nil {
			t.Fatal(err)
		}
		for _, name := range test.names {
			out, err := exec.CommandContext(t.Context(), filepath.Join(root, test.dir, name), "--help").CombinedOutput()
			if err != nil || !strings.Contains(string(out), "The Coxswain "+name) {
				t.Errorf("%s --help in image %s: %v: %s", name, test.image, err, out)
			}
		}
	}
}
