// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-hpc/coxswain/internal/node/image/squash"
)

// user is who asks, and other is one of the user's groups.
const (
	user  = 4141
	other = 4242
)

// deadline bounds what is to come soon.
const deadline = 20 * time.Second

func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 1 && os.Args[1] == "sleep":
		squash.Sleep(os.Stdin)
		return
	case len(os.Args) > 1 && os.Args[1] == "squashfuse":
		fmt.Fprintln(os.Stderr, squash.Confined(os.Args[2:]))
		os.Exit(1)
	case len(os.Args) == 4 && os.Args[1] == "ask":
		fmt.Println(ask(os.Args[2], os.Args[3]))
		return
	}
	os.Exit(m.Run())
}

// ask returns what a user gets from a service for an image in a file: what is in its file a, or why there is none.
func ask(socket, image string) string {
	// Users may open so what they may not read.
	file, err := os.OpenFile(image, unix.O_PATH, 0)
	if err != nil {
		return err.Error()
	}
	mounted, err := Open(context.Background(), socket, file)
	if err != nil {
		return err.Error()
	}
	fd, err := unix.Openat(int(mounted.Mount.Fd()), "a", unix.O_RDONLY, 0)
	if err != nil {
		return err.Error()
	}
	content, err := io.ReadAll(os.NewFile(uintptr(fd), "a"))
	return string(content) + errorText(err)
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// reachable returns a directory that users reach.
func reachable(t *testing.T) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root mounts images for users")
	}
	for _, program := range []string{"mksquashfs", "squashfuse"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed", program)
		}
	}
	dir, err := os.MkdirTemp("/var/tmp", "service")
	if err = errors.Join(err, os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func squashfs(t *testing.T, dir string) string {
	t.Helper()
	image := filepath.Join(dir, "image.sqsh")
	files := t.TempDir()
	err := os.WriteFile(filepath.Join(files, "a"), []byte("in the image"), 0o644)
	out, failed := exec.CommandContext(t.Context(), "mksquashfs", files, image, "-quiet", "-no-progress").CombinedOutput()
	if err = errors.Join(err, failed, os.Chmod(image, 0o644)); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return image
}

// serving starts a service, and returns its socket.
func serving(t *testing.T, dir string) (*Server, string) {
	t.Helper()
	s := &Server{Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	socket := filepath.Join(dir, "socket")
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- s.Serve(ctx, socket) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	expectSoon(t, "the service listens", func() bool {
		status, err := os.Stat(socket)
		return err == nil && status.Mode().Perm() == 0o666
	})
	return s, socket
}

func expectSoon(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(deadline); !is(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("not so in %s: %s", deadline, what)
		}
	}
}

// asked runs ask as the user.
func asked(t *testing.T, socket, image string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "/proc/self/exe", "ask", socket, image)
	command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user, Groups: []uint32{other}}}
	command.Dir = "/"
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	if err := command.Run(); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	return strings.TrimSpace(out.String())
}

func (q *quota) empty() bool {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	return len(q.users) == 0
}

func TestAUserGetsWhatTheUserMayRead(t *testing.T) {
	dir := reachable(t)
	image := squashfs(t, dir)
	s, socket := serving(t, dir)
	for name, test := range map[string]struct {
		mode os.FileMode
		gid  int
		want string
	}{
		"a file of all":                      {0o644, 0, "in the image"},
		"a file of one of the user's groups": {0o640, other, "in the image"},
		"a file of another group":            {0o640, other + 1, "Permission denied"},
		"a file of root":                     {0o600, 0, "Permission denied"},
	} {
		if err := errors.Join(os.Chown(image, 0, test.gid), os.Chmod(image, test.mode)); err != nil {
			t.Fatal(err)
		}
		if got := asked(t, socket, image); !strings.HasSuffix(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
	expectSoon(t, "no squashfuse is left", s.serving.empty)
	expectSoon(t, "no question is left", s.asking.empty)
}

func TestAUserReadsWhyAnImageIsNone(t *testing.T) {
	dir := reachable(t)
	_, socket := serving(t, dir)
	noise, pipe := filepath.Join(dir, "noise"), filepath.Join(dir, "pipe")
	if err := errors.Join(os.WriteFile(noise, bytes.Repeat([]byte("noise"), 1000), 0o644), unix.Mkfifo(pipe, 0o666)); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		noise:       "squashfuse has ended: This doesn't look like a squashfs image.",
		pipe:        "the image is no file",
		"/dev/zero": "the image is no file",
	} {
		if got := asked(t, socket, path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

func TestAUserWhoCannotLookIntoAnImageDoesNotWaitForItsEnd(t *testing.T) {
	dir := reachable(t)
	listener, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: filepath.Join(dir, "socket"), Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	image, err := os.Open(squashfs(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = image.Close() }()
	ended := make(chan error, 1)
	go func() { ended <- serveAnother(listener) }()
	ctx, stop := context.WithTimeout(t.Context(), deadline)
	defer stop()
	if m, err := Open(ctx, listener.Addr().String(), image); err == nil || !errors.Is(err, unix.EACCES) {
		t.Errorf("%v, %v", m, err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// serveAnother answers one question with a mount that is another user's, and waits as long as somebody has it.
func serveAnother(listener *net.UnixListener) error {
	conn, err := listener.AcceptUnix()
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	file, err := receive(conn, &question{})
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	served, err := squash.OpenFile(file, squash.Owner{UID: user, GID: user}, nil)
	if err != nil {
		return err
	}
	if err := errors.Join(send(conn, answer{Image: &Mounted{}}, served.Mount), served.Mount.Close()); err != nil {
		return err
	}
	select {
	case <-served.Ended:
		return nil
	case <-time.After(deadline):
		return errors.New("squashfuse has not ended")
	}
}

func TestAQuestionForAFileNeedsTheFile(t *testing.T) {
	_, socket := serving(t, reachable(t))
	conn, hangUp, err := dial(t.Context(), socket)
	if err != nil {
		t.Fatal(err)
	}
	defer hangUp()
	var a answer
	if err := send(conn, question{File: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := receive(conn, &a); err != nil || a.Error != "the image came without a file" {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestAUserCannotFillANode(t *testing.T) {
	dir := reachable(t)
	image := squashfs(t, dir)
	s, socket := serving(t, dir)
	for name, q := range map[string]*quota{
		"you have 512 images in files on this node, and may have no more":          &s.serving,
		"you wait for 512 images on this node, and may wait for no more at a time": &s.asking,
	} {
		var releases []func()
		for range maxAtOnce {
			release, ok := q.take(user)
			if !ok {
				t.Fatal("the user has too many already")
			}
			releases = append(releases, release)
		}
		if got := asked(t, socket, image); got != name {
			t.Errorf("%q, want %q", got, name)
		}
		file, err := os.Open(image)
		if err != nil {
			t.Fatal(err)
		}
		mounted, err := Open(t.Context(), socket, file)
		if err != nil {
			t.Errorf("another user gets none: %v", err)
		} else {
			_ = mounted.Mount.Close()
		}
		_ = file.Close()
		releases[0]()
		if got := asked(t, socket, image); got != "in the image" {
			t.Errorf("with one less: %q", got)
		}
		for _, release := range releases[1:] {
			release()
		}
		expectSoon(t, "all is given back", func() bool { return s.asking.empty() && s.serving.empty() })
	}
}

func TestAServiceEndsWhileUsersHaveImages(t *testing.T) {
	dir := reachable(t)
	file, err := os.Open(squashfs(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	var mounted *Mounted
	t.Run("a service", func(t *testing.T) {
		_, socket := serving(t, dir)
		if mounted, err = Open(t.Context(), socket, file); err != nil {
			t.Fatal(err)
		}
	})
	fd, err := unix.Openat(int(mounted.Mount.Fd()), "a", unix.O_RDONLY, 0)
	if err != nil {
		t.Errorf("the image is gone: %v", err)
	}
	_, _ = unix.Close(fd), mounted.Mount.Close()
}

func TestTheGroupsOfWhoAsksAreKnown(t *testing.T) {
	_, socket := serving(t, reachable(t))
	conn, hangUp, err := dial(t.Context(), socket)
	if err != nil {
		t.Fatal(err)
	}
	defer hangUp()
	want, err := unix.Getgroups()
	if err != nil {
		t.Fatal(err)
	}
	groups, err := peerGroups(conn)
	var got []int
	for _, g := range groups {
		got = append(got, int(g))
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, want %v, %v", got, want, err)
	}
}
