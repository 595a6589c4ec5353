// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package populate

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// image makes a small root file system with everything that one can have.
func image(t *testing.T) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root may give files to others")
	}
	root := filepath.Join(t.TempDir(), "image")
	for _, dir := range []string{"etc/ssh", "etc/sudoers.d", "usr/bin", "usr/lib", "home/guest", "root", "var/empty", "tmp/left", "proc/1", "dev", "mnt/jail"} {
		must(t, os.MkdirAll(filepath.Join(root, dir), 0o755))
	}
	for name, content := range map[string]string{
		"etc/passwd": "root:x:0:0::/root:/bin/sh\n", "etc/hosts": "of the image\n", "etc/os-release": "release 1\n", "etc/ssh/ssh_host_key": "of the image\n",
		"usr/bin/sh": "#!", "usr/bin/ping": "ping", "usr/bin/srun": "of the image", "usr/lib/libc.so": strings.Repeat("c", 100_000),
		"home/guest/.profile": "hello\n", "root/.bashrc": "#\n", "tmp/left/over": "x", "proc/1/status": "x", ".dockerenv": "", Sentinel: "of the image\n",
		"etc/sudoers.d/admin": "ALL\n", "usr/bin/program": "not in a jail",
	} {
		must(t, os.WriteFile(filepath.Join(root, name), []byte(content), 0o644))
	}
	at := func(rel string) string { return filepath.Join(root, rel) }
	must(t, os.Symlink("usr/bin", at("bin")))
	must(t, os.Symlink("/run/nowhere", at("etc/dangling")))
	must(t, os.Link(at("usr/bin/sh"), at("usr/bin/dash")))
	must(t, os.Link(at("usr/bin/sh"), at("usr/lib/sh")))
	must(t, unix.Mkfifo(at("var/pipe"), 0o620))
	must(t, unix.Mknod(at("var/null"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))))
	sparse, err := os.Create(at("var/sparse"))
	must(t, err)
	_, err = sparse.WriteAt([]byte("data"), 8<<20)
	must(t, err)
	must(t, sparse.Truncate(16<<20))
	must(t, sparse.Close())
	must(t, os.Lchown(at("home/guest/.profile"), 1000, 1001))
	must(t, os.Lchown(at("etc/dangling"), 7, 8))
	must(t, os.Chown(at("home/guest"), 1000, 1001))
	must(t, os.Chmod(at("usr/bin/ping"), 0o755|os.ModeSetuid))
	must(t, os.Chmod(at("tmp"), 0o777|os.ModeSticky))
	must(t, unix.Setxattr(at("usr/lib/libc.so"), "user.kept", []byte("yes"), 0))
	must(t, filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		old := unix.NsecToTimespec(time.Date(2025, 1, 2, 3, 4, 5, 678, time.UTC).UnixNano())
		return unix.UtimesNanoAt(unix.AT_FDCWD, path, []unix.Timespec{old, old}, unix.AT_SYMLINK_NOFOLLOW)
	}))
	return root
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// tree describes everything below a directory, a line for each path. Times of directories are those of the last write in them.
func tree(t *testing.T, root string) map[string]string {
	t.Helper()
	out, inodes := map[string]string{}, map[uint64]string{}
	must(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		must(t, err)
		info, err := entry.Info()
		must(t, err)
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			t.Fatal("no stat")
		}
		line := fmt.Sprintf("%v %d:%d %d", info.Mode(), st.Uid, st.Gid, st.Rdev)
		switch {
		case info.Mode().IsRegular():
			content, err := os.ReadFile(path)
			must(t, err)
			sum := sha256.Sum256(content)
			value := make([]byte, 64)
			n, _ := unix.Getxattr(path, "user.kept", value)
			line += fmt.Sprintf(" %d %s %d %s", info.Size(), hex.EncodeToString(sum[:4]), info.ModTime().UnixNano(), value[:max(0, n)])
			if first, linked := inodes[st.Ino]; linked {
				line += " is " + first
			}
			inodes[st.Ino] = rel
			if rel == "var/sparse" && st.Blocks*512 > 1<<20 {
				line += " is not sparse"
			}
		case info.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(path)
			must(t, err)
			line += " " + to + fmt.Sprint(info.ModTime().UnixNano())
		case !info.IsDir():
			line += fmt.Sprint(info.ModTime().UnixNano())
		}
		out[rel] = line
		return nil
	}))
	return out
}

// expected returns what a jail is that was filled from an image, without the sentinel.
func expected(t *testing.T, image string) map[string]string {
	t.Helper()
	want := tree(t, image)
	for _, gone := range []string{".dockerenv", "tmp/left", "tmp/left/over", "proc/1", "proc/1/status", "etc/hosts", Sentinel, "usr/bin/program", "mnt/jail"} {
		delete(want, gone)
	}
	want["usr/bin/srun"] = "-> /run/slurm/bin/srun"
	for _, made := range []string{"run", "sys", "mnt/host", "var/lib", "var/lib/extrausers", "var/lib/sss", "var/spool", "var/spool/slurmd", "data", "data/deep"} {
		want[made] = "drwxr-xr-x 0:0 0"
	}
	want["etc/hosts"], want["etc/resolv.conf"] = "an empty file", "an empty file"
	return want
}

func normal(lines map[string]string) map[string]string {
	for _, file := range []string{"etc/hosts", "etc/resolv.conf"} {
		if strings.HasPrefix(lines[file], "-rw-r--r-- 0:0 0 0 ") {
			lines[file] = "an empty file"
		}
	}
	if strings.Contains(lines["usr/bin/srun"], "/run/slurm/bin/srun") {
		lines["usr/bin/srun"] = "-> /run/slurm/bin/srun"
	}
	delete(lines, Sentinel)
	return lines
}

func options(image, jail string) Options {
	return Options{
		Source: image, Jail: jail, MountPoints: []string{"/data/deep"}, Exclude: []string{"/usr/bin/program", "/mnt/jail"},
		SlurmDir: "/run/slurm", SlurmPrograms: []string{"srun"}, Workers: 1, Now: time.Unix(0, 0),
	}
}
