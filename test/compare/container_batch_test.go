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

// batch submits a script by a command.
func (s *site) batch(t *testing.T, script, command string) {
	t.Helper()
	if err := os.WriteFile(s.Path("out/script"), []byte("#!/bin/sh\n"+script+"\necho end\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if out, code := s.shell(command + " /mnt/out/script"); code != 0 {
		t.Fatalf("%s: %s", command, out)
	}
}

func testBatchScript(t *testing.T, s *site) {
	s.batch(t, "#SBATCH --container-image="+s.registry.host+`\#lab/tools:1
		cat /image
		pwd
		id -un
		test -r $0 && echo readable
		(echo x >>$0) 2>/dev/null || echo kept
		touch /srv/new && cat /mnt/data/file`,
		"sbatch -o /mnt/out/batch")
	const want = "lab/tools\n/srv\nalice\nreadable\nkept\ncat: can't open '/mnt/data/file': No such file or directory\n"
	if got := s.output(t, "batch"); got != want {
		t.Errorf("the script prints\n%s\nwant\n%s", got, want)
	}
}

// testBatchVariable submits a script with no option but a variable, which is all that a job has that is submitted by REST.
func testBatchVariable(t *testing.T, s *site) {
	s.batch(t, "cat /image", "PYXIS_CONTAINER_IMAGE=$T sbatch -o /mnt/out/variable")
	if got, want := s.output(t, "variable"), "lab/tools\n"; got != want {
		t.Errorf("the script prints %q, want %q", got, want)
	}
}

func testInheritance(t *testing.T, s *site) {
	// What srun needs of the node is in the container: an image has no Slurm.
	s.batch(t, `cat /image
		/usr/bin/srun -Q cat /image
		/usr/bin/srun -Q --container-image=`+s.registry.host+`#lab/bare:1 sh -c 'cat /image; ls -d /usr/bin/srun'
		/usr/bin/srun -Q --container-image=`+s.registry.host+`#lab/bare:1 --container-mounts=/mnt/data sh -c '
			cat /image; ls -d /usr/bin/srun || pwd' 2>/dev/null`,
		"sbatch -o /mnt/out/inherit --container-image=$T --container-workdir=/bin --container-mounts=/usr,/etc --container-mounts=/run,/mnt")
	want := "lab/tools\nlab/tools\nlab/bare\n/usr/bin/srun\nlab/bare\n/bin\n"
	if got := s.output(t, "inherit"); got != want {
		t.Errorf("the script prints\n%s\nwant\n%s", got, want)
	}
}

func testArray(t *testing.T, s *site) {
	s.batch(t, `own=element-$SLURM_ARRAY_TASK_ID
		touch /$own /mnt/out/$own
		until test -e /mnt/out/element-1 && test -e /mnt/out/element-2 && test -e /mnt/out/element-3; do sleep 0.05; done
		ls / | grep element-`, "sbatch --array=1-3 -o /mnt/out/array-%a --container-image=$T --container-mounts=/mnt/out")
	for _, element := range []string{"1", "2", "3"} {
		if got, want := s.output(t, "array-"+element), "element-"+element+"\n"; got != want {
			t.Errorf("element %s sees %q of all elements, want %q", element, got, want)
		}
	}
}
