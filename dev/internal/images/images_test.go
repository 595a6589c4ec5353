// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWrittenArchiveCanBeRead(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "hello")
	read := func(content string) Image {
		t.Helper()
		if err := os.WriteFile(program, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "hello.tar")
		if err := WriteProgram(path, "example.com/hello:1", program); err != nil {
			t.Fatal(err)
		}
		images, err := Read(path)
		if err != nil || len(images) != 1 || images[0].Reference != "example.com/hello:1" {
			t.Fatalf("read %v, %v", images, err)
		}
		return images[0]
	}
	first := read("one")
	if again := read("one"); again != first {
		t.Errorf("the same program gave %v and %v", first, again)
	}
	if other := read("two"); other == first {
		t.Error("another program gave the same image")
	}
}

func TestNormalize(t *testing.T) {
	for given, want := range map[string]string{
		"busybox":                   "docker.io/library/busybox:latest",
		"busybox:1":                 "docker.io/library/busybox:1",
		"coxswain/slurmd:1":         "docker.io/coxswain/slurmd:1",
		"localhost/slurmd":          "localhost/slurmd:latest",
		"registry:5000/slurmd":      "registry:5000/slurmd:latest",
		"ghcr.io/a/b:2":             "ghcr.io/a/b:2",
		"localkube.invalid/pause:1": "localkube.invalid/pause:1",
	} {
		if got := normalize(given); got != want {
			t.Errorf("normalize(%q) = %q, want %q", given, got, want)
		}
	}
}

func TestManifestsThatCannotBeUsed(t *testing.T) {
	for manifest, want := range map[string]string{
		`[{"Config":"a.json"}]`: "no name",
		`[]`:                    "no image",
		`{}`:                    "parsing manifest.json",
		``:                      "parsing manifest.json",
	} {
		if _, err := parseManifest([]byte(manifest)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want something about %q", manifest, err, want)
		}
	}
}

func TestAnImportThatLostALayerIsTriedAgain(t *testing.T) {
	for says, tries := range map[string]string{
		`failed to prepare extraction snapshot "x": parent snapshot sha256:a does not exist: not found`: "....",
		"no space left on device": "..",
	} {
		dir := t.TempDir()
		// Each call adds a point; the list of images is the first, and the third import succeeds.
		ctr := "#!/bin/sh\nprintf . >>" + dir + "/calls\ncase $(cat " + dir + "/calls) in . | ....) exit 0 ;; esac\necho '" + says + "' >&2\nexit 1\n"
		if err := os.WriteFile(filepath.Join(dir, "ctr"), []byte(ctr), 0o755); err != nil {
			t.Fatal(err)
		}
		t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
		path := filepath.Join(dir, "x.tar")
		if err := WriteProgram(path, "x:1", "/bin/true"); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "record"), []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Store{Socket: "socket", Record: filepath.Join(dir, "record")}.Import(t.Context(), path)
		if again := tries == "...."; (err == nil) != again {
			t.Errorf("containerd says %q, and the import gives %v", says, err)
		}
		if calls, err := os.ReadFile(filepath.Join(dir, "calls")); err != nil || string(calls) != tries {
			t.Errorf("containerd says %q, and is asked %d times, want %d: %v", says, len(calls), len(tries), err)
		}
	}
}

func FuzzRead(f *testing.F) {
	path := filepath.Join(f.TempDir(), "x.tar")
	if err := WriteProgram(path, "x:1", "/bin/true"); err != nil {
		f.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b[:4096])
	f.Add([]byte("not a tar"))
	f.Fuzz(func(t *testing.T, archive []byte) {
		images, err := read(bytes.NewReader(archive))
		if err == nil && len(images) == 0 {
			t.Error("no image and no error")
		}
	})
}
