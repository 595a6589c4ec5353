// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"errors"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-hpc/coxswain/test/realslurm"
)

// site is a Slurm with one node, on which steps may run in containers, and a registry of images that its node can reach.
type site struct {
	*realslurm.Box
	release  string
	registry *testRegistry
}

// trial is a line of shell that a user types where srun is, and what comes of it. Its variables $T and $B are the images lab/tools and lab/bare,
// $R is the name of the registry, and $D the digest of lab/tools.
type trial struct {
	// name is a sentence.
	name string
	line string
	// prints is all that is printed; without it nothing is looked at but the parts of the text that are in says, and those in hides.
	prints      string
	says, hides []string
	code        int
}

// TestStepsOfSlurmRunInContainers starts steps with the options of pyxis on slurmds of both releases. The files of images are mounted by the
// kernel on the one, and by squashfuse on the other.
func TestStepsOfSlurmRunInContainers(t *testing.T) {
	images := newImages(t)
	for _, root := range realslurm.Roots(t) {
		t.Run(root.Release, func(t *testing.T) {
			t.Parallel()
			s := openSite(t, root, images)
			for topic, trials := range map[string][]trial{
				"identity": identityTrials(), "environment": environmentTrials(), "files": fileTrials(), "mounts": mountTrials(),
				"namespaces": namespaceTrials(), "refusals": refusalTrials(), "registry": registryTrials(), "tasks": taskTrials(), "srun": srunTrials(),
			} {
				t.Run(topic, func(t *testing.T) { s.with(t).try(t, trials) })
			}
			for name, test := range map[string]func(*testing.T, *site){
				"variables of a job stand for options of sbatch":                      testBatchVariable,
				"a batch script runs in the container of its job":                     testBatchScript,
				"sruns of a batch script have its container, unless they say other":   testInheritance,
				"elements of an array have a container each":                          testArray,
				"a step that is cancelled leaves nothing":                             testCancel,
				"a signal comes to all tasks":                                         testSignal,
				"a script before each task":                                           testTaskProlog,
				"a step that is cancelled while its image is imported leaves nothing": testCancelledImport,
				"a program without its container does not run at all":                 testPlugstack,
				"images in files and directories":                                     testPaths,
			} {
				t.Run(name, func(t *testing.T) { test(t, s.with(t)) })
			}
			t.Run("steps of two nodes", func(t *testing.T) { testTwoNodes(t, s.with(t)) })
			t.Run("nothing stays of all these steps", func(t *testing.T) { s.with(t).isClean(t) })
		})
	}
}

// alice is the user, and her home directory is on the node. She is in a group of the node.
const (
	alice  = "alice"
	home   = "/mnt/home"
	before = "before"
)

// openSite starts a Slurm and all that its containers need.
func openSite(t *testing.T, root realslurm.Root, images *testImages) *site {
	t.Helper()
	s := &site{release: root.Release, Box: realslurm.Open(t, root, "PlugStackConfig=/mnt/plugstack.conf\nPrologFlags=Contain\nDefMemPerCPU=1")}
	if _, err := s.Try("test", "-e", "/usr/lib/x86_64-linux-gnu/slurm-wlm/spank_pyxis.so"); err != nil {
		t.Fatal("the images have no spank_pyxis.so: images/build makes those that do")
	}
	s.plugstack(t, "required")
	s.Run("sh", "-c", `umask 022
		mkdir -p /mnt/home/sub /mnt/data /mnt/club /mnt/out
		echo of the node >/mnt/data/file
		echo of alice >/mnt/home/mine
		echo of a sub-directory >/mnt/home/sub/file
		echo of the club >/mnt/club/file
		chown -R alice:2000 /mnt/home /mnt/data /mnt/out
		echo club:x:3000:alice >>/etc/group
		chgrp -R 3000 /mnt/club
		chmod 750 /mnt/club
		chmod 1777 /dev/shm
		mkdir /dev/pts
		mount -t devpts -o newinstance,ptmxmode=666,mode=620,gid=5 devpts /dev/pts
		ln -s pts/ptmx /dev/ptmx`)
	s.registry = images.serve(t, s.Listen())
	var options []string
	if root.Release == "24.11" {
		options = append(options, "-userspace")
	}
	s.StartImages(s.registry.host, options...)
	s.StartController()
	s.StartSlurmd("a", 16, "RealMemory=100")
	for _, image := range []string{"$T", "$B"} { // so that no later step prints that it is imported
		if out, code := s.shell("srun --container-image=" + image + " true"); code != 0 {
			t.Fatalf("srun in %s: %d %s\n%s", image, code, out, s.Logs())
		}
	}
	s.Wait("these steps to end", func() bool { return s.Run("sh", "-c", "pgrep -c slurmstepd || true") == "0" })
	s.Run("sh", "-c", leftovers+" >/mnt/"+before)
	return s
}

// with returns the site for a part of the test.
func (s *site) with(t *testing.T) *site {
	out := *s
	out.Box = s.With(t)
	return &out
}

// plugstack names the plugin to Slurm, as "required" or "optional".
func (s *site) plugstack(t *testing.T, need string) {
	t.Helper()
	if err := os.WriteFile(s.Path("plugstack.conf"), []byte(need+" spank_pyxis.so\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

// waiting is what srun and salloc tell of a job that does not start at once.
var waiting = regexp.MustCompile(`(?m)^(srun|salloc): .*(queued and waiting for resources|been allocated resources|Step created for .*)\n`)

// shell runs a line of shell as alice, and returns what it prints and its exit code.
func (s *site) shell(line string) (out string, code int) {
	out, err := s.Try("setpriv", "--reuid="+alice, "--regid=2000", "--init-groups", "env", "HOME="+home, "T="+s.registry.host+"#lab/tools:1",
		"B="+s.registry.host+"#lab/bare:1", "R="+s.registry.host, "D="+s.registry.images.digest,
		"timeout", "60", "sh", "-c", "cd "+home+"; "+line)
	out = strings.TrimSpace(waiting.ReplaceAllString(out+"\n", ""))
	if failure, ok := errors.AsType[*exec.ExitError](err); ok {
		return out, failure.ExitCode()
	}
	return out, 0
}

// try runs trials.
func (s *site) try(t *testing.T, trials []trial) {
	t.Helper()
	for _, test := range trials {
		t.Run(test.name, func(t *testing.T) {
			out, code := s.shell(test.line)
			is := func(part string) bool { return strings.Contains(out, strings.ReplaceAll(part, "$R", s.registry.host)) }
			isNot := func(part string) bool { return !is(part) }
			if code != test.code || test.prints != "" && out != test.prints || slices.ContainsFunc(test.says, isNot) || slices.ContainsFunc(test.hides, is) {
				t.Errorf("%s\nends with %d and prints\n%s\nwant %d and\n%s\nwith %q, without %q",
					test.line, code, out, test.code, test.prints, test.says, test.hides)
			}
		})
	}
}

// leftovers prints what is on a node that may be of a container: processes but those of this command, mounts, and files of imports. Images stay
// mounted, for the next step.
const leftovers = `{ ps -e -o comm= | grep -v -E '^(sh|ps|grep|sort|sleep|setpriv|env|timeout|find|squashfuse)$'
	grep -E ' (overlay|squashfs|fuse[^ ]*) ' /proc/self/mounts | grep -v ' /run/coxswain/images/'
	find /mnt/images -name '.import*'; } | sort`

// isClean waits until nothing of steps is on the node.
func (s *site) isClean(t *testing.T) {
	t.Helper()
	want, got := s.Run("cat", "/mnt/"+before), ""
	defer func() {
		if t.Failed() {
			t.Logf("the node has\n%s\nand had before\n%s", got, want)
		}
	}()
	s.Wait("what steps have left to go", func() bool {
		got = s.Run("sh", "-c", leftovers)
		return got == want
	})
}
