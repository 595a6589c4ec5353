// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"os"
	"strings"
	"testing"
)

// output waits until a batch script has written "end" to a file in /mnt/out, and returns what it has written before.
func (s *site) output(t *testing.T, name string) string {
	t.Helper()
	var before string
	s.Wait("the output of "+name, func() bool {
		text, err := os.ReadFile(s.Path("out/" + name))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		var ended bool
		before, ended = strings.CutSuffix(string(text), "end\n")
		return ended
	})
	return before
}

// batch submits a script of a user.
func (s *site) batch(t *testing.T, script, options string) {
	t.Helper()
	if err := os.WriteFile(s.Path("out/script"), []byte("#!/bin/sh\n"+script+"\necho end\n"), 0o755); err != nil { //nolint:gosec // a script of a user
		t.Fatal(err)
	}
	if out, code := s.shell(alice, "sbatch "+options+" /mnt/out/script"); code != 0 {
		t.Fatalf("sbatch %s: %s", options, out)
	}
}

func testBatchScript(t *testing.T, s *site) {
	s.batch(t, "#SBATCH --container-image="+s.registry.host+`\#lab/tools:1`+"\ncat /image; pwd; id -un; test -r $0 && echo readable; (echo x >>$0) 2>/dev/null || echo kept; touch /srv/new && cat /mnt/data/file",
		"-o /mnt/out/batch")
	if got, want := s.output(t, "batch"), "lab/tools\n/srv\nalice\nreadable\nkept\ncat: can't open '/mnt/data/file': No such file or directory\n"; got != want {
		t.Errorf("the script prints\n%s\nwant\n%s", got, want)
	}
}

func testInheritance(t *testing.T, s *site) {
	// What srun needs of the node is in the container: an image has no Slurm.
	s.batch(t, `cat /image
		/usr/bin/srun -Q cat /image
		/usr/bin/srun -Q --container-image=`+s.registry.host+`#lab/bare:1 sh -c 'cat /image; ls -d /usr/bin/srun'
		/usr/bin/srun -Q --container-image=`+s.registry.host+`#lab/bare:1 --container-mounts=/mnt/data sh -c 'cat /image; ls -d /usr/bin/srun; pwd' 2>&1`,
		"-o /mnt/out/inherit --container-image=$T --container-workdir=/bin --container-mounts=/usr,/etc --container-mounts=/run,/mnt")
	want := "lab/tools\nlab/tools\nlab/bare\n/usr/bin/srun\nlab/bare\nls: /usr/bin/srun: No such file or directory\n/bin\n"
	if got := s.output(t, "inherit"); got != want {
		t.Errorf("the script prints\n%s\nwant\n%s", got, want)
	}
}

func testArray(t *testing.T, s *site) {
	s.batch(t, `own=element-$SLURM_ARRAY_TASK_ID
		touch /$own /mnt/out/$own
		until test -e /mnt/out/element-1 && test -e /mnt/out/element-2 && test -e /mnt/out/element-3; do sleep 0.05; done
		ls / | grep element-`, "--array=1-3 -o /mnt/out/array-%a --container-image=$T --container-mounts=/mnt/out")
	for _, element := range []string{"1", "2", "3"} {
		if got, want := s.output(t, "array-"+element), "element-"+element+"\n"; got != want {
			t.Errorf("element %s sees %q of all elements, want %q", element, got, want)
		}
	}
}
