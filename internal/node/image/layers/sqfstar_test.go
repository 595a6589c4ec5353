// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"archive/tar"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// squashfsTools returns sqfstar and unsquashfs: $COXSWAIN_SQFSTAR with its neighbour, or those on PATH.
func squashfsTools(t testing.TB) (sqfstar, unsquashfs string) {
	t.Helper()
	if sqfstar = os.Getenv("COXSWAIN_SQFSTAR"); sqfstar == "" {
		sqfstar = "sqfstar"
	}
	sqfstar, err := exec.LookPath(sqfstar)
	if err != nil {
		t.Skipf("no squashfs was made of the archive: %v (apt install squashfs-tools, or set COXSWAIN_SQFSTAR)", err)
	}
	if unsquashfs, err = exec.LookPath(filepath.Join(filepath.Dir(sqfstar), "unsquashfs")); err != nil {
		t.Skipf("no squashfs was made of the archive: %v", err)
	}
	return sqfstar, unsquashfs
}

// squash makes a squashfs of an image and returns what sqfstar printed.
func squash(t testing.TB, sqfstar string, image *Image, file, compressor string, options ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), sqfstar, image.Summary().SqfstarArguments(file, compressor, options...)...)
	in, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var printed strings.Builder
	command.Stdout, command.Stderr = &printed, &printed
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	err = image.WriteTar(t.Context(), in)
	if err = errors.Join(err, in.Close(), command.Wait()); err != nil {
		t.Fatalf("%v: %s", err, &printed)
	}
	return printed.String()
}

func TestSqfstarMakesTheSameOfTheArchive(t *testing.T) {
	sqfstar, unsquashfs := squashfsTools(t)
	lower := []entry{
		aDir(".", 0o750), aDir("etc", 0o755), aFile("etc/passwd", "root"), aFile("etc/old", "old"), aSymlink("bin", "usr/bin"),
		aFile("usr/bin/sh", "#!"), aLink("usr/bin/dash", "usr/bin/sh"),
		aFile("usr/lib/hidden", strings.Repeat("hidden ", 50_000)), aLink("usr/lib/kept", "usr/lib/hidden"), aFile("raw\xff\nname", "1"),
		aFile(strings.Repeat("n", 255)+"/"+strings.Repeat("é", 127), "long"), aFile("opt/a/b", "1"), special("pipe", tar.TypeFifo),
		aSymlink("long", strings.Repeat("x", 4095)),
		aFile("attributes", "1").attribute("user.k", "v\x00w"), aDir("d", 0o1777).attribute("user.k", strings.Repeat("v", 500)),
		aFile("past", "").with(func(h *tar.Header) { h.ModTime = time.Unix(-5, 0) }), aFile("future",
			"").with(func(h *tar.Header) { h.ModTime = time.Unix(4_000_000_000, 0) }),
	}
	for i := range 2000 {
		lower = append(lower, aFile(fmt.Sprintf("many/%d/%d", i%20, i), "same size"))
	}
	upper := []entry{aFile("etc/.wh.old", ""), aFile("usr/lib/hidden", "2"), aFile("opt/.wh..wh..opq", ""), aFile("opt/c", "2"),
		aLink("usr/bin/low", "/etc/passwd"), special("null", tar.TypeChar)}
	layers := layersOf([][]entry{lower, upper})
	want, err := merged(t, layers, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	image, err := Read(t.Context(), layers, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file, root := filepath.Join(dir, "image.sqsh"), filepath.Join(dir, "root")
	if printed := squash(t, sqfstar, image, file, "lz4"); printed != "" {
		t.Errorf("sqfstar printed: %s", printed)
	}
	if out, err := exec.CommandContext(t.Context(), unsquashfs, "-quiet", "-no-progress", "-dest", root, file).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if diff := cmp.Diff(want, unpacked(t, root)); diff != "" {
		t.Error(diff)
	}
	stat, err := os.Stat(root)
	if err != nil {
		t.Fatal(err)
	}
	version, _ := exec.CommandContext(t.Context(), sqfstar, "-version").CombinedOutput()
	ignoresTime := strings.Contains(string(version), "version 4.5") // of Debian 12
	if stat.Mode().Perm() != 0o750 || stat.ModTime().Unix() != 2000 && !ignoresTime {
		t.Errorf("the root has mode %v and time %d", stat.Mode(), stat.ModTime().Unix())
	}
}

// unpacked describes a tree on disk as describe does an archive.
func unpacked(t *testing.T, root string) map[string]string {
	t.Helper()
	out, same := map[string]string{}, map[uint64][]string{}
	err := filepath.WalkDir(root, func(at string, d fs.DirEntry, err error) error {
		if err != nil || at == root {
			return err
		}
		name, err := filepath.Rel(root, at)
		if err != nil {
			return err
		}
		stat, err := d.Info()
		if err != nil {
			return err
		}
		system := stat.Sys().(*syscall.Stat_t)
		var value [1 << 16]byte
		attribute := ""
		if n, err := unix.Lgetxattr(at, "user.k", value[:]); err == nil {
			attribute = " user.k=" + string(value[:n])
		}
		switch stat.Mode().Type() {
		case fs.ModeDir:
			out[name] = fmt.Sprintf("dir %o %d%s", system.Mode&0o7777, stat.ModTime().Unix(), attribute)
			return nil
		case fs.ModeSymlink:
			target, err := os.Readlink(at)
			out[name] = "-> " + target
			return err
		case fs.ModeNamedPipe:
			out[name] = fmt.Sprintf("type %c %o", tar.TypeFifo, system.Mode&0o7777)
		default:
			content, err := os.ReadFile(at)
			if err != nil {
				return err
			}
			out[name] = fmt.Sprintf("file %o %d %q%s", system.Mode&0o7777, stat.ModTime().Unix(), content, attribute)
		}
		same[system.Ino] = append(same[system.Ino], name)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, all := range same {
		if slices.Sort(all); len(all) > 1 {
			for _, name := range all {
				out[name] += " = " + strings.Join(all, " ")
			}
		}
	}
	return out
}
