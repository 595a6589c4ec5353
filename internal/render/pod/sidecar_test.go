// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// sidecar is a running reconfigure sidecar in directories of a test, with a scontrol that writes down that it was called.
type sidecar struct {
	t    *testing.T
	dir  string
	cmd  *exec.Cmd
	done chan error
	out  output
}

// output is what a process prints, read while it runs.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

func newSidecar(t *testing.T) *sidecar {
	t.Helper()
	s := &sidecar{t: t, dir: t.TempDir()}
	for _, name := range []string{"etc", "run", "bin"} {
		if err := os.Mkdir(filepath.Join(s.dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s.scontrol("exit 0")
	return s
}

// scontrol sets what scontrol does, after it has written down the stamp that it finds.
func (s *sidecar) scontrol(script string) {
	s.write("bin/scontrol", "#!/bin/sh\ngrep -o 'coxswain_config=.*' $ETC_SLURM/slurm.conf >>"+s.dir+"/calls\n"+script+"\n", 0o755)
	// An inotifywait that sees every change at once would hide what the digest does; this one looks ten times a second.
	s.write("bin/inotifywait", "#!/bin/sh\nexec sleep 0.1\n", 0o755)
}

func (s *sidecar) write(name, content string, mode os.FileMode) {
	s.t.Helper()
	file := filepath.Join(s.dir, name)
	if err := os.WriteFile(file+".new", []byte(content), mode); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		s.t.Fatal(err)
	}
}

// files puts files into /etc/slurm, slurm.conf with the stamp, and returns the digest of all.
func (s *sidecar) files(files map[string]string) string {
	s.t.Helper()
	const first = "SlurmctldParameters=enable_configless"
	var sums strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256([]byte(files[name])), name)
	}
	digest := fmt.Sprintf("%x", sha256.Sum256([]byte(sums.String())))
	for name, content := range files {
		if name == "slurm.conf" {
			content = strings.ReplaceAll(content, first, first+",coxswain_config="+digest)
		}
		s.write("etc/"+name, content, 0o644)
	}
	return digest
}

func (s *sidecar) start() {
	s.t.Helper()
	s.cmd = exec.Command("bash", "-c", reconfigureScript)
	s.cmd.Env = append(os.Environ(), "PATH="+s.dir+"/bin:"+os.Getenv("PATH"), "ETC_SLURM="+s.dir+"/etc",
		"RUN_SLURMCTLD="+s.dir+"/run", "TERMINATION_LOG="+s.dir+"/words")
	s.cmd.Stdout, s.cmd.Stderr = &s.out, &s.out
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	s.cmd.WaitDelay = 5 * time.Second
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	done := make(chan error, 1)
	s.done = done
	go func() { done <- s.cmd.Wait() }()
	s.t.Cleanup(func() { s.signal(syscall.SIGKILL) })
}

// signal sends a signal to the process group, as tini -g does.
func (s *sidecar) signal(signal syscall.Signal) { _ = syscall.Kill(-s.cmd.Process.Pid, signal) }

func (s *sidecar) read(name string) string {
	text, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// await waits until a file has a content.
func (s *sidecar) await(name, want string) {
	s.t.Helper()
	s.until(func() bool { return s.read(name) == want }, func() string { return fmt.Sprintf("%s is %q, want %q", name, s.read(name), want) })
}

// until waits until so returns true, and otherwise fails with what is wrong.
func (s *sidecar) until(so func() bool, wrong func() string) {
	s.t.Helper()
	deadline := time.Now().Add(time.Minute)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		if so() {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("%s\n%s", wrong(), s.out.String())
		}
	}
}

// exit waits for the end of the process.
func (s *sidecar) exit() error {
	s.t.Helper()
	select {
	case err := <-s.done:
		return err
	case <-time.After(time.Minute):
		s.t.Fatalf("it does not end\n%s", s.out.String())
		return nil
	}
}

const aConf = "ClusterName=demo\nSlurmctldParameters=enable_configless\n"

func TestReconfigureLoadsWhatChangedOnce(t *testing.T) {
	s := newSidecar(t)
	first := s.files(map[string]string{"slurm.conf": aConf, "cgroup.conf": "a"})
	s.write("etc/slurm.key", "key", 0o600)
	s.start()
	s.await("run/config.digest", first)
	second := s.files(map[string]string{"slurm.conf": aConf + "KillWait=31\n", "cgroup.conf": "b"})
	s.await("run/config.digest", second)
	s.await("calls", "coxswain_config="+second)
	for _, key := range []string{"slurm.key", "slurm.jwks", "jwt.key", "jwks.json"} {
		s.write("etc/"+key, "another key", 0o600)
	}

	s.signal(syscall.SIGTERM)
	if err := s.exit(); err != nil {
		t.Errorf("told to end, it says %v", err)
	}
	s.start()
	third := s.files(map[string]string{"slurm.conf": aConf + "KillWait=32\n", "cgroup.conf": "b"})
	s.await("run/config.digest", third)
	s.await("calls", "coxswain_config="+second+"\ncoxswain_config="+third)

	s.signal(syscall.SIGKILL)
	if err := s.exit(); err == nil {
		t.Error("killed, it ended well")
	}
	fourth := s.files(map[string]string{"slurm.conf": aConf + "KillWait=33\n", "cgroup.conf": "b"})
	s.start()
	s.await("run/config.digest", fourth)
}

func TestReconfigureStartsNoProcessForFilesThatAreTheSame(t *testing.T) {
	s := newSidecar(t)
	s.write("bin/inotifywait", "#!/bin/sh\necho >>"+s.dir+"/looks\nexec sleep 0.1\n", 0o755)
	s.write("bin/sha256sum", "#!/bin/sh\necho >>"+s.dir+"/sums\nPATH=${PATH#*:} exec sha256sum \"$@\"\n", 0o755)
	s.start()
	lines := func(name string) int {
		text, _ := os.ReadFile(filepath.Join(s.dir, name))
		return strings.Count(string(text), "\n")
	}
	reaches := func(name string, n int) {
		t.Helper()
		s.until(func() bool { return lines(name) >= n }, func() string { return fmt.Sprintf("there are %d %s, want %d", lines(name), name, n) })
	}
	digest := s.files(map[string]string{"slurm.conf": aConf, "gres.conf": "a"})
	s.await("run/config.digest", digest)
	reaches("looks", lines("looks")+3)
	sums := lines("sums")
	if sums == 0 {
		t.Fatal("no digest was made of the files")
	}
	reaches("looks", lines("looks")+10)
	if now := lines("sums"); now != sums {
		t.Errorf("sha256sum was started %d times for files that are the same", now-sums)
	}
}

func TestReconfigureLeavesSecondsBetweenTwo(t *testing.T) {
	s := newSidecar(t)
	s.scontrol("date +%s >>" + s.dir + "/times")
	first := s.files(map[string]string{"slurm.conf": aConf})
	s.start()
	s.await("run/config.digest", first)
	second := s.files(map[string]string{"slurm.conf": aConf + "KillWait=31\n"})
	s.await("run/config.digest", second)
	s.files(map[string]string{"slurm.conf": aConf + "KillWait=32\n"})
	fourth := s.files(map[string]string{"slurm.conf": aConf + "KillWait=33\n"})
	s.await("run/config.digest", fourth)
	var early, late int
	if _, err := fmt.Sscan(s.read("times"), &early, &late); err != nil {
		t.Fatalf("the times of two calls are %q: %v", s.read("times"), err)
	}
	if late-early < 2 { // the shell counts whole seconds, too
		t.Errorf("there were %d s between two reconfigurations", late-early)
	}
	s.await("calls", "coxswain_config="+second+"\ncoxswain_config="+fourth)
}

func TestReconfigureWaitsForAllFiles(t *testing.T) {
	s := newSidecar(t)
	first := s.files(map[string]string{"slurm.conf": aConf, "gres.conf": "a"})
	s.start()
	s.await("run/config.digest", first)
	// slurm.conf arrives first: its stamp is that of both files.
	whole := s.files(map[string]string{"slurm.conf": aConf + "KillWait=31\n", "gres.conf": "b"})
	s.write("etc/gres.conf", "a", 0o644)
	s.write("etc/gres.conf", "b", 0o644)
	s.await("run/config.digest", whole)
	s.await("calls", "coxswain_config="+whole)
}

func TestReconfigureTellsARefusalOnceAndGoesOn(t *testing.T) {
	s := newSidecar(t)
	first := s.files(map[string]string{"slurm.conf": aConf})
	s.start()
	s.await("run/config.digest", first)
	s.scontrol("echo 'scontrol: error: Parsing error at unrecognized key: FooBar'; echo 'scontrol: fatal: Unable to process configuration file'; exit 1")
	bad := s.files(map[string]string{"slurm.conf": aConf + "FooBar=1\n"})
	if err := s.exit(); err == nil {
		t.Error("it ended well")
	}
	want := bad + ": scontrol: error: Parsing error at unrecognized key: FooBar\nscontrol: fatal: Unable to process configuration file"
	if got := s.read("words"); got != want {
		t.Errorf("its last words are %q, want %q", got, want)
	}
	s.start()
	s.scontrol("exit 0")
	good := s.files(map[string]string{"slurm.conf": aConf + "KillWait=31\n"})
	s.await("run/config.digest", good)
}

func TestReconfigureTriesAgainWhileSlurmctldIsAway(t *testing.T) {
	s := newSidecar(t)
	first := s.files(map[string]string{"slurm.conf": aConf})
	s.start()
	s.await("run/config.digest", first)
	s.scontrol("[ -e " + s.dir + "/up ] || { echo 'slurm_reconfigure error: Unable to contact slurm controller (connect failure)'; exit 1; }")
	changed := s.files(map[string]string{"slurm.conf": aConf + "KillWait=31\n"})
	s.await("calls", "coxswain_config="+changed)
	s.write("up", "", 0o644)
	s.await("run/config.digest", changed)
}
