// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package squash

import (
	"bufio"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestAUserReadsAnImageInAFile(t *testing.T) {
	for _, compressor := range []string{"gzip", "lzo", "xz", "lz4", "zstd"} {
		t.Run(compressor, func(t *testing.T) {
			mount := func() *os.File {
				return served(t, squashfs(t, map[string]string{"etc/a": "1"}, "-comp", compressor, "-all-root")).Mount
			}
			asUser(t, mount, func(t *testing.T, dir string) {
				path := filepath.Join(dir, "etc/a")
				if got, err := os.ReadFile(path); err != nil || string(got) != "1" {
					t.Errorf("the file has %q, %v", got, err)
				}
				status, err := os.Stat(path)
				if err != nil {
					t.Fatal(err)
				}
				if s := status.Sys().(*syscall.Stat_t); s.Uid != 0 || s.Gid != 0 {
					t.Errorf("the file belongs to %d:%d, want the user", s.Uid, s.Gid)
				}
				if err := os.WriteFile(filepath.Join(dir, "b"), nil, 0o600); !errors.Is(err, unix.EROFS) {
					t.Errorf("writing: %v", err)
				}
			})
		})
	}
}

func TestNoDeviceOfAnImageOpensWhateverAUserDoesWithTheMount(t *testing.T) {
	mount := func() *os.File {
		return served(t, squashfs(t, map[string]string{"a": ""}, "-p", "zero c 666 0 0 1 5", "-p", "full c 666 4141 4141 1 7")).Mount
	}
	asUser(t, mount, func(t *testing.T, dir string) {
		clear := unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_RDONLY}
		if err := unix.MountSetattr(unix.AT_FDCWD, dir, 0, &clear); err != nil {
			t.Logf("nodev stays: %v", err)
		}
		for _, name := range []string{"zero", "full"} {
			path := filepath.Join(dir, name)
			if status, err := os.Stat(path); err != nil || status.Mode()&os.ModeDevice == 0 {
				t.Errorf("%s is no device: %v", name, err)
			}
			if f, err := os.Open(path); !errors.Is(err, unix.EACCES) {
				t.Errorf("opening %s: %v, %v", name, f, err)
			}
		}
	})
}

func TestAUserReadsAnImageWhereAPartOfProcIsCovered(t *testing.T) {
	needsRoot(t)
	again := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^TestAUserReadsAnImageInAFile$/^zstd$", "-test.v", "-test.timeout=60s")
	again.Env = append(os.Environ(), covered+"=yes")
	again.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	if out, err := again.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestNobodyElseLooksIntoTheMountOfAUser(t *testing.T) {
	needsRoot(t)
	s := served(t, squashfs(t, map[string]string{"a": "1"}))
	if fd, err := unix.Openat(int(s.Mount.Fd()), "a", unix.O_RDONLY, 0); !errors.Is(err, unix.EACCES) {
		t.Errorf("root opens a file: %d, %v", fd, err)
	}
}

func TestSquashfuseEndsWhenNobodyHasTheMount(t *testing.T) {
	needsRoot(t)
	s := served(t, squashfs(t, map[string]string{"a": "1"}))
	if s.Err() != nil {
		t.Fatal(s.Err())
	}
	_ = s.Mount.Close()
	expectEnd(t, s)
	if s.Err() != nil {
		t.Errorf("it ended with an error: %v", s.Err())
	}
}

func TestSquashfuseEndsWhenTheContainerIsKilled(t *testing.T) {
	if os.Getenv(inside) != "" {
		_, err := os.ReadFile(filepath.Join(attached(t), "a"))
		fmt.Println("read:", err)
		select {}
	}
	needsRoot(t)
	s := served(t, squashfs(t, map[string]string{"a": "1"}))
	container := inNamespaces(t, s.Mount)
	out, err := container.StdoutPipe()
	if err = errors.Join(err, container.Start(), s.Mount.Close()); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan() && !strings.HasPrefix(lines.Text(), "read:"); {
		t.Log(lines.Text())
	}
	select {
	case <-s.Ended:
		t.Fatalf("squashfuse ended before the container: %v", s.Err())
	default:
	}
	_ = container.Process.Kill()
	_ = container.Wait()
	expectEnd(t, s)
	if s.Err() != nil {
		t.Errorf("it ended with an error: %v", s.Err())
	}
}

// pidOf returns the squashfuse that serves a file.
func pidOf(t *testing.T, path string) string {
	t.Helper()
	found, err := filepath.Glob("/proc/[0-9]*/fd/3")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		name, err := os.ReadFile(filepath.Join(f, "../../comm"))
		if to, _ := os.Readlink(f); err == nil && to == path && strings.HasPrefix(string(name), "squashfuse") {
			return filepath.Join(f, "../..")
		}
	}
	t.Fatalf("nothing serves %s", path)
	return ""
}

func TestSquashfuseHasNoRightsAndSeesNothingOfTheNode(t *testing.T) {
	if process := os.Getenv("COXSWAIN_SQUASH_TEST_PROCESS"); process != "" {
		if f, err := os.OpenFile(process+"/mem", os.O_RDWR, 0); err == nil || f != nil {
			t.Errorf("the user takes over squashfuse")
		}
		return
	}
	needsRoot(t)
	path := squashfs(t, map[string]string{"a": "1"})
	s := served(t, path)
	// It has become squashfuse when it answers.
	if err := asUserLooks(t, s); err != nil {
		t.Fatal(err)
	}
	process := pidOf(t, path)
	status, err := os.ReadFile(process + "/status")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Uid:\t4141\t4141\t4141\t4141", "Gid:\t4141\t4141\t4141\t4141", "Groups:\t4242", "CapPrm:\t0000000000000000", "CapEff:\t0000000000000000",
		"CapInh:\t0000000000000000", "CapAmb:\t0000000000000000", "NoNewPrivs:\t1",
	} {
		if !strings.Contains(string(status), want) {
			t.Errorf("it has not %q:\n%s", want, status)
		}
	}
	entries, err := os.ReadDir(process + "/root/")
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if got := strings.Join(names, " "); err != nil || got != "lib lib64 proc usr" && got != "lib proc usr" {
		t.Errorf("it sees %q, %v", got, err)
	}
	if _, err := os.ReadDir(process + "/root/" + process); !errors.Is(err, os.ErrNotExist) && !strings.HasSuffix(process, "/1") {
		t.Errorf("it sees processes of the node: %v", err)
	}
	again := inNamespaces(t, s.Mount)
	again.Env = append(again.Env, "COXSWAIN_SQUASH_TEST_PROCESS="+process)
	if out, err := again.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// asUserLooks looks into a mount as the user, which waits until squashfuse answers. It returns what the user gets to see.
func asUserLooks(t testing.TB, s *Served) error {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- lookAs(int(s.Mount.Fd())) }()
	select {
	case err := <-ended:
		return err
	case <-time.After(deadline):
		return errors.New("squashfuse does not answer")
	}
}

func TestNobodyLooksIntoWhatIsNoImage(t *testing.T) {
	needsRoot(t)
	dir := t.TempDir()
	whole, err := os.ReadFile(squashfs(t, map[string]string{"a": strings.Repeat("abc", 1000), "b/c": "1"}))
	if err != nil {
		t.Fatal(err)
	}
	noise := make([]byte, 1<<16)
	_, _ = rand.Read(noise)
	for name, content := range map[string][]byte{
		"empty":                       nil,
		"cut off in the superblock":   whole[:50],
		"cut off behind it":           whole[:96],
		"cut off in the middle":       whole[:binary.LittleEndian.Uint64(whole[usedAt:])/2],
		"noise":                       noise,
		"noise behind the magic":      append([]byte(magic), noise...),
		"noise behind the superblock": append(append([]byte(nil), whole[:96]...), noise...),
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
		s := served(t, path)
		err := asUserLooks(t, s)
		if err == nil {
			t.Errorf("%s: the user can look into it", name)
		}
		_ = s.Mount.Close()
		expectEnd(t, s)
		// Some find at the first look that there is no root directory, and go on.
		if errors.Is(err, unix.ENOTCONN) && (s.Err() == nil || !strings.Contains(s.Err().Error(), "squash")) {
			t.Errorf("%s: %v", name, s.Err())
		}
		t.Logf("%s: %v", name, s.Err())
	}
}

func TestAFileThatItsUserMayNotReadIsNotReadForThem(t *testing.T) {
	needsRoot(t)
	path := squashfs(t, map[string]string{"a": "1"})
	for name, test := range map[string]struct {
		mode os.FileMode
		gid  int
		fine bool
	}{
		"one of root":                {0o600, 0, false},
		"one of a group of the user": {0o640, other, true},
		"one of another group":       {0o640, other + 1, false},
	} {
		if err := errors.Join(os.Chown(path, 0, test.gid), os.Chmod(path, test.mode)); err != nil {
			t.Fatal(err)
		}
		// Users may open what they may not read so.
		s := servedAs(t, path, unix.O_PATH)
		if err := asUserLooks(t, s); (err == nil) != test.fine {
			t.Errorf("%s: %v", name, err)
		}
		_ = s.Mount.Close()
		expectEnd(t, s)
		if (s.Err() == nil) != test.fine {
			t.Errorf("%s: %v", name, s.Err())
		}
	}
}

func TestOnlyFilesAreServed(t *testing.T) {
	needsRoot(t)
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(pipe, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{pipe, "/dev/zero", t.TempDir()} {
		f, err := os.OpenFile(path, unix.O_PATH, 0)
		if err != nil {
			t.Fatal(err)
		}
		if s, err := OpenFile(f, Owner{user, user}, nil); err == nil || !strings.Contains(err.Error(), "the image is no file") {
			t.Errorf("%s: %v, %v", path, s, err)
		}
		_ = f.Close()
	}
}

// BenchmarkOpenFile measures what a container waits for: until it can look into an image in a file.
func BenchmarkOpenFile(b *testing.B) {
	needsRoot(b)
	path := squashfs(b, map[string]string{"a": "1"})
	for b.Loop() {
		s := served(b, path)
		if err := asUserLooks(b, s); err != nil {
			b.Fatal(err)
		}
		_ = s.Mount.Close()
		<-s.Ended
	}
}
