// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"strings"
	"testing"
	"time"
)

// background runs a line of shell as alice, and returns where what it prints will be.
func (s *site) background(line string) <-chan string {
	printed := make(chan string, 1)
	go func() {
		out, _ := s.shell(line)
		printed <- out
	}()
	return printed
}

// ended waits for what a line of shell prints.
func ended(t *testing.T, printed <-chan string) string {
	t.Helper()
	select {
	case out := <-printed:
		return out
	case <-time.After(settles):
		t.Fatal("srun does not end")
		return ""
	}
}

func testCancel(t *testing.T, s *site) {
	printed := s.background("srun -n3 --container-image=$T sleep 12345")
	s.Wait("three tasks", func() bool { return s.Run("sh", "-c", "pgrep -c -f '^[^ ]*sleep 12345' || true") == "3" })
	s.Run("scancel", "--user=alice")
	if out := ended(t, printed); !strings.Contains(out, "CANCELLED") {
		t.Errorf("srun prints %q", out)
	}
	s.isClean(t)
}

func testSignal(t *testing.T, s *site) {
	printed := s.background(`srun -n2 --container-image=$T --container-mounts=/mnt/out sh -c '
		trap "echo caught; exit 3" USR1; touch /mnt/out/ready-$SLURM_PROCID; while :; do sleep 0.1; done'; echo $?`)
	s.Wait("the tasks", func() bool { return s.Run("sh", "-c", "ls /mnt/out | grep -c ready- || true") == "2" })
	s.Run("scancel", "--user=alice", "--signal=USR1")
	if out := ended(t, printed); strings.Count(out, "caught\n") != 2 || !strings.HasSuffix(out, "\n3") {
		t.Errorf("srun prints %q", out)
	}
}

func testCancelledImport(t *testing.T, s *site) {
	defer close(s.registry.release)
	printed := s.background("srun -n2 --container-image=$R#lab/slow:1 true")
	select {
	case <-s.registry.asked:
	case <-time.After(settles):
		t.Fatal("nobody asks for the image")
	}
	s.Run("scancel", "--user=alice")
	if out := ended(t, printed); !strings.Contains(out, "srun: error: a: tasks 0-1: Terminated") {
		t.Errorf("srun prints %q", out)
	}
	for _, program := range []string{"slurmstepd", "container step"} {
		s.Wait("the step's "+program+" to end", func() bool { return s.Run("sh", "-c", "pgrep -c -f '^"+program+"' || true") == "0" })
	}
}

// testPlugstack starts steps that can have no container with both words of plugstack.conf. Slurm goes on without a plugin that is optional.
func testPlugstack(t *testing.T, s *site) {
	defer s.plugstack(t, "required")
	for _, need := range []string{"required", "optional"} {
		s.plugstack(t, need)
		for _, options := range []string{
			"--container-image=$R#lab/nothing:1", "--container-image=$T --container-workdir=/nowhere", "--container-image=$T --container-mounts=/nowhere",
		} {
			out, code := s.shell("srun " + options + " touch /mnt/out/outside; ls /mnt/out/outside")
			if code != 2 || !strings.Contains(out, "error: pyxis: ") || !strings.Contains(out, "Exited with exit code 1") {
				t.Errorf("%s with %s: %d, %s", options, need, code, out)
			}
		}
		if out, code := s.shell("srun --container-image=$T cat /image"); code != 0 || out != "lab/tools" {
			t.Errorf("a step in a container with %s: %d, %s", need, code, out)
		}
	}
}
