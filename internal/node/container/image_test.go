// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package container

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-hpc/coxswain/internal/node/container/step"
	"github.com/coxswain-hpc/coxswain/internal/node/image/service"
	"github.com/coxswain-hpc/coxswain/internal/node/image/squash"
)

// testUser is the user of the job here.
const testUser = 4141

func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 1 && os.Args[1] == "squashfuse":
		fmt.Fprintln(os.Stderr, squash.Confined(os.Args[2:]))
		os.Exit(1)
	case len(os.Args) == 4 && os.Args[1] == "start":
		_ = json.NewEncoder(os.Stdout).Encode(start(os.Args[2], os.Args[3]))
		return
	}
	os.Exit(m.Run())
}

// started is what a process sees that has started a container.
type started struct {
	Error     string
	Directory string
	Set       []string
	// A is the file of that name, and Owner the user whose it is.
	A     string
	Owner uint32
}

// start makes a container, as "container step" does.
func start(socket, request string) (out started) {
	var r step.Request
	err := json.Unmarshal([]byte(request), &r)
	if err == nil {
		var made *step.Result
		if made, err = Start(context.Background(), socket, &r, func(string) {}); err == nil {
			out.Directory, out.Set = made.Directory, made.Set
			err = os.Chdir(made.Directory)
		}
	}
	if err != nil {
		out.Error = err.Error()
		return out
	}
	content, _ := os.ReadFile("/a")
	var status unix.Stat_t
	_ = unix.Stat("/a", &status)
	out.A, out.Owner = string(content), status.Uid
	return out
}

// startedAs starts a container as the user, in namespaces as those that the plugin makes.
func startedAs(t *testing.T, socket string, r *step.Request) started {
	t.Helper()
	r.UID, r.GID = testUser, testUser
	request, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), "/proc/self/exe", "start", socket, string(request))
	command.Dir = "/"
	ids := []syscall.SysProcIDMap{{ContainerID: testUser, HostID: testUser, Size: 1}}
	command.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: ids, GidMappings: ids,
		Credential:  &syscall.Credential{Uid: testUser, Gid: testUser, NoSetGroups: true},
		AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_DAC_OVERRIDE, unix.CAP_NET_ADMIN},
	}
	var said bytes.Buffer
	command.Stderr = &said
	out, err := command.Output()
	var result started
	if err = errors.Join(err, json.Unmarshal(out, &result)); err != nil {
		t.Fatalf("%v\n%s%s", err, out, said.String())
	}
	return result
}

// reachable returns a directory that users reach, and a socket of a service.
func reachable(t *testing.T) (dir, socket string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root mounts images for users")
	}
	for _, program := range []string{"mksquashfs", "squashfuse"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed", program)
		}
	}
	dir, err := os.MkdirTemp("/var/tmp", "container")
	if err = errors.Join(err, os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	s := service.Server{Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	socket = filepath.Join(dir, "socket")
	go func() { ended <- s.Serve(ctx, socket) }()
	t.Cleanup(func() {
		stop()
		if err := errors.Join(<-ended, os.RemoveAll(dir)); err != nil {
			t.Error(err)
		}
	})
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(20 * time.Second); ; <-tick.C {
		if status, err := os.Stat(socket); err == nil && status.Mode().Perm() == 0o666 {
			return dir, socket
		}
		if time.Now().After(end) {
			t.Fatal("the service does not listen")
		}
	}
}

// write writes files: a path below a directory and its content.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
}

func squashfs(t *testing.T, image string, files map[string]string) {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, files)
	out, err := exec.CommandContext(t.Context(), "mksquashfs", dir, image, "-quiet", "-no-progress").CombinedOutput()
	if err = errors.Join(err, os.Chmod(image, 0o644)); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func TestAContainerStartsFromASquashfsFileWithItsConfiguration(t *testing.T) {
	dir, socket := reachable(t)
	squashfs(t, filepath.Join(dir, "image.sqsh"), map[string]string{
		"a": "in the image", "etc/environment": "PATH=/opt/bin:${PATH}\nFROM=\"${JOB}\"\n", "etc/rc": "mkdir -p \"/w/x\"\ncd \"/w/x\" && unset OLDPWD\nexec \"$@\"\n",
	})
	for _, image := range []string{filepath.Join(dir, "image.sqsh"), "./image.sqsh", "../" + filepath.Base(dir) + "/image.sqsh"} {
		got := startedAs(t, socket, &step.Request{Image: image, Directory: dir, Environment: []string{"JOB=12", "PATH=/usr/bin", "HOME=/home/a"}})
		if got.Error != "" || got.A != "in the image" || got.Owner != testUser || got.Directory != "/w/x" {
			t.Errorf("%s: %+v", image, got)
		}
		for _, want := range []string{"PATH=/opt/bin:", "FROM=12"} {
			if !slices.Contains(got.Set, want) {
				t.Errorf("%s: the environment has not %s: %q", image, want, got.Set)
			}
		}
	}
}

func TestAContainerStartsFromAFileWithoutConfiguration(t *testing.T) {
	dir, socket := reachable(t)
	squashfs(t, filepath.Join(dir, "image.sqsh"), map[string]string{"a": "in the image"})
	got := startedAs(t, socket, &step.Request{Image: dir + "/image.sqsh", Environment: []string{"PATH=/usr/bin"}})
	if got.Error != "" || got.A != "in the image" || got.Directory != "/" || !slices.Contains(got.Set, "PATH="+defaultPath) {
		t.Errorf("%+v", got)
	}
}

func TestAContainerStartsFromADirectory(t *testing.T) {
	dir, socket := reachable(t)
	for name, owner := range map[string]uint32{"the user's": testUser, "root's": nobody} {
		root := strings.ReplaceAll(name, "'", "")
		files := map[string]string{"a": "in the directory", "etc/environment": "FROM=1\n"}
		for _, place := range []string{"proc", "sys", "dev", "tmp", "var/run", "var/lock"} {
			files[place+"/.keep"] = ""
		}
		write(t, filepath.Join(dir, root), files)
		if owner == testUser {
			if out, err := exec.CommandContext(t.Context(), "chown", "-R", "4141:4141", filepath.Join(dir, root)).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
		}
		got := startedAs(t, socket, &step.Request{Image: "./" + root, Directory: dir})
		if got.Error != "" || got.A != "in the directory" || got.Owner != owner || !slices.Contains(got.Set, "FROM=1") {
			t.Errorf("%s: %+v", name, got)
		}
		if _, err := os.Stat(filepath.Join(dir, root, "etc/passwd")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: the directory was written: %v", name, err)
		}
	}
}

func TestAnImageInAFileIsRefusedWithASentenceThatNamesTheFile(t *testing.T) {
	dir, socket := reachable(t)
	whole := filepath.Join(dir, "whole.sqsh")
	squashfs(t, whole, map[string]string{"a": strings.Repeat("1", 100)})
	content, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, map[string]string{
		"text": "hello", "cut.sqsh": string(content[:200]), "noise.sqsh": string(content[:96]) + strings.Repeat("noise", len(content)), "secret/image.sqsh": string(content),
	})
	err = errors.Join(unix.Mkfifo(filepath.Join(dir, "pipe"), 0o666), os.Symlink("secret/image.sqsh", filepath.Join(dir, "link")),
		os.Symlink("loop", filepath.Join(dir, "loop")), os.Chmod(filepath.Join(dir, "secret/image.sqsh"), 0o600), os.Mkdir(filepath.Join(dir, "closed"), 0o700))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"missing":           "--container-image: " + dir + "/missing: no such file or directory",
		"text":              "--container-image: " + dir + "/text is no squashfs file",
		"text/x":            "--container-image: " + dir + "/text/x: not a directory",
		"cut.sqsh":          "--container-image: " + dir + "/cut.sqsh is cut off: it has 200 of ",
		"noise.sqsh":        "failed to create container filesystem for image: " + dir + "/noise.sqsh: ",
		"pipe":              "--container-image: " + dir + "/pipe is neither a squashfs file nor a directory",
		"link":              "--container-image: " + dir + "/link: permission denied",
		"loop":              "--container-image: " + dir + "/loop: too many levels of symbolic links",
		"closed/x":          "--container-image: " + dir + "/closed/x: permission denied",
		"../../../dev/zero": "--container-image: /dev/zero is neither a squashfs file nor a directory",
	} {
		got := startedAs(t, socket, &step.Request{Image: "./" + path, Directory: dir})
		if !strings.HasPrefix(got.Error, want) {
			t.Errorf("%s: %q, want %q", path, got.Error, want)
		}
	}
}
