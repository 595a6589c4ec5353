// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

func gzipped(content []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(content)
	_ = w.Close()
	return b.Bytes()
}

func zstded(content []byte) []byte {
	w, _ := zstd.NewWriter(nil)
	return w.EncodeAll(content, nil)
}

func TestAnImageIsRefusedWithTheNameOfTheEntry(t *testing.T) {
	long, deep := strings.Repeat("n", 256), strings.Repeat("d/", 256)+"f"
	many := make([]entry, 0, 11)
	for i := range 11 {
		many = append(many, aFile("d/"+string(rune('a'+i)), ""))
	}
	for _, tc := range []struct {
		name   string
		layer  []entry
		limits Limits
		want   string
	}{
		{"a name above the root", []entry{aFile("a/../../x", "")}, Limits{},
			`merging entry "a/../../x" of layer 2: the name leaves the root of the image`},
		{"an absolute name above the root", []entry{aFile("/../x", "")}, Limits{},
			`merging entry "/../x" of layer 2: the name leaves the root of the image`},
		{"the parent of the root", []entry{aDir("..", 0o755)}, Limits{}, `merging entry ".." of layer 2: the name leaves the root of the image`},
		{"a root that is a file", []entry{aFile(".", "")}, Limits{}, `merging entry "." of layer 2: the root is not a directory`},
		{"a root that is a symbolic link", []entry{aSymlink("/", "/etc")}, Limits{}, `merging entry "/" of layer 2: the root is not a directory`},
		{"a file through a symbolic link of its layer", []entry{aSymlink("s", "/etc"), aFile("s/passwd", "")}, Limits{},
			`merging entry "s/passwd" of layer 2: the name goes through a symbolic link of the same layer`},
		{"a hard link out of the root", []entry{aLink("a", "../etc/shadow")}, Limits{},
			`merging entry "a" of layer 2: the hard link is to a name outside of the image`},
		{"a hard link to nothing", []entry{aLink("a", "/etc/shadow")}, Limits{},
			`merging entry "a" of layer 2: no entry before the hard link has the name that it is to`},
		{"a hard link before its file", []entry{aLink("a", "b"), aFile("b", "")}, Limits{},
			`merging entry "a" of layer 2: no entry before the hard link`},
		{"a hard link to what an upper layer has hidden", []entry{aFile(".wh.low", ""), aLink("a", "low")}, Limits{},
			`no entry before the hard link has the name`},
		{"a hard link through a symbolic link", []entry{aDir("d", 0o755), aFile("d/f", ""), aSymlink("s", "d"), aLink("a", "s/f")}, Limits{},
			`merging entry "a" of layer 2: no entry`},
		{"a hard link to a directory", []entry{aDir("d", 0o755), aLink("a", "d")}, Limits{},
			`merging entry "a" of layer 2: the hard link is to a directory`},
		{"a hard link to the root", []entry{aLink("a", "/")}, Limits{}, `merging entry "a" of layer 2: the hard link is to a directory`},
		{"a whiteout without a name", []entry{aFile("d/.wh.", "")}, Limits{}, `merging entry "d/.wh." of layer 2: the whiteout hides no name`},
		{"a whiteout of the parent", []entry{aFile("d/.wh...", "")}, Limits{},
			`merging entry "d/.wh..." of layer 2: the whiteout hides no name`},
		{"a whiteout above the root", []entry{aFile("../.wh.x", "")}, Limits{}, `merging entry "../.wh.x" of layer 2: the name leaves the root`},
		{"a symbolic link to nothing", []entry{aSymlink("s", "")}, Limits{}, `merging entry "s" of layer 2: the symbolic link has no target`},
		{"a type of no file system", []entry{special("x", 'Z')}, Limits{},
			`merging entry "x" of layer 2: the entry is of a type that no file system has: 'Z'`},

		{"a name of 256 bytes", []entry{aFile(long, "")}, Limits{}, `nnn..." of layer 2: more than 255 bytes in one component of a name`},
		{"a path of 257 components", []entry{aFile(deep, "")}, Limits{}, `/..." of layer 2: more than 256 components in a name`},
		{"a path of 4096 bytes", []entry{aFile(strings.Repeat("sixteen-letters/", 256)+"f", "")}, Limits{Depth: 1000},
			`-..." of layer 2: more than 4095 bytes in a name`},
		{"a long target", []entry{aSymlink("s", strings.Repeat("x", 4096))}, Limits{},
			`merging entry "s" of layer 2: more than 4095 bytes in the target of a symbolic link`},
		{"long attributes", []entry{aFile("a", "").attribute("user.a", strings.Repeat("x", 3000)).attribute("user.b", strings.Repeat("x",
			3000))}, Limits{},
			`merging entry "a" of layer 2: more than 4096 bytes of extended attributes`},
		{"entries of all layers", []entry{aFile("a", "1"), aFile("a", "2"), aFile("a", "3")}, Limits{Entries: 3}, `: more than 3 entries`},
		{"directories that are only implied", []entry{aFile("a/b/c/d/e", "")}, Limits{Entries: 5},
			`merging entry "a/b/c/d/e" of layer 2: more than 5 names`},
		{"names in a directory", many, Limits{DirectoryEntries: 10}, `merging entry "d/k" of layer 2: more than 10 names in one directory`},
		{"bytes", []entry{aFile("a", strings.Repeat("x", 900)), aFile("b", "12345")}, Limits{Bytes: 3000}, `more than 3000 bytes in all layers`},
		{"memory", []entry{aFile("a", ""), aFile("b", ""), aFile("c", "")}, Limits{Memory: 600}, `: more than 600 bytes of memory`},
		{"memory for attributes", []entry{aDir("a", 0).attribute("user.k", strings.Repeat("v", 3000))}, Limits{Memory: 3000},
			`: more than 3000 bytes of memory`},
		{"layers", nil, Limits{Layers: 1}, `reading 2 layers: more than 1 layers`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := merged(t, layersOf([][]entry{{aFile("low", "")}, tc.layer}), tc.limits)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v and %v, want %q", got, err, tc.want)
			}
			var limit *LimitError
			if over := strings.Contains(tc.want, "more than"); over != errors.As(err, &limit) {
				t.Errorf("%v is a LimitError: %t", err, !over)
			}
		})
	}
	if _, err := merge(t.Context(), io.Discard, nil, Limits{}); !errors.Is(err, errNoLayers) {
		t.Error(err)
	}
}

// TestASparseFileCountsWithItsSize has one of 8 TiB in a few bytes. Only its header is read.
func TestASparseFileCountsWithItsSize(t *testing.T) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "huge", Size: 8 << 40, Format: tar.FormatGNU}); err != nil {
		t.Fatal(err)
	}
	_, err := merged(t, []Layer{layerOf(b.Bytes())}, Limits{})
	if err == nil || !strings.HasPrefix(err.Error(), `merging entry "huge" of layer 1: more than 274877906944 bytes in all layers`) {
		t.Error(err)
	}
}

// zeros is a gzip stream of zeros, made without the zeros in memory.
func zeros(t *testing.T, name string, size int64) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size}); err != nil {
		t.Fatal(err)
	}
	block := make([]byte, 1<<20)
	for range size >> 20 {
		if _, err := w.Write(block); err != nil {
			t.Fatal(err)
		}
	}
	_ = w.Close()
	_ = z.Close()
	return b.Bytes()
}

func TestABombOfZerosIsRefusedBeforeItIsRead(t *testing.T) {
	bomb := zeros(t, "bomb", 64<<20)
	if _, err := merged(t, []Layer{layerOf(bomb)}, Limits{}); err != nil {
		t.Errorf("64 MiB of zeros: %v", err)
	}
	m := &meter{limits: Limits{}.withDefaults()}
	if err := m.addFile(2 << 30); err == nil || err.Error() != "more than 200 times the compressed size in all layers" {
		t.Error(err)
	}
	m = &meter{limits: Limits{}.withDefaults()}
	m.compressed.Store(1 << 29)
	if err := m.addFile(2 << 30); err != nil {
		t.Error(err)
	}
}

func TestADamagedLayerIsRefusedWithItsNumber(t *testing.T) {
	good := archive(aFile("a", "1"), aFile("etc/x", strings.Repeat("content ", 500)), aFile("z", "1"))
	packed := gzipped(good)
	checksum := bytes.Clone(packed)
	checksum[len(checksum)-6] ^= 1
	frame := zstded(good)
	for _, tc := range []struct {
		name  string
		layer []byte
		want  string
	}{
		{"nothing", nil, "reading layer 2: the layer ends without"},
		{"garbage", bytes.Repeat([]byte("garbage "), 100), "reading layer 2: archive/tar: invalid tar header"},
		{"a page of HTML", []byte("<html>"), "reading layer 2: unexpected EOF"},
		{"gzip of garbage", gzipped(bytes.Repeat([]byte("garbage "), 100)), "reading layer 2: archive/tar: invalid tar header"},
		{"no more than gzip's magic", packed[:4], "reading layer 2: unexpected EOF"},
		{"a tar that ends in a file", good[:3*512+700], `reading layer 2 from entry "etc/x" on: unexpected EOF`},
		{"a tar that ends between entries", good[:1024], `reading layer 2 from entry "a" on: the layer ends without the two empty blocks`},
		{"a gzip that ends early", packed[:len(packed)-30], `reading layer 2 from entry "`},
		{"a gzip without its checksum", packed[:len(packed)-8], `reading layer 2 from entry "z" on: unexpected EOF`},
		{"a gzip with a wrong checksum", checksum, `reading layer 2 from entry "z" on: gzip: invalid checksum`},
		{"a zstd that ends early", frame[:len(frame)-9], `reading layer 2`},
		{"a zstd with a wrong checksum", append(bytes.Clone(frame[:len(frame)-1]), frame[len(frame)-1]^1), `reading layer 2`},
		{"a zstd that wants a window of 2 GiB", []byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xa8, 0, 0, 0}, `reading layer 2: window size exceeded`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := merged(t, []Layer{layerOf(good), layerOf(tc.layer)}, Limits{}); err == nil || !strings.HasPrefix(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestLayersMayBeCompressed(t *testing.T) {
	one := func(name string) []byte { return archive(aFile(name, name)) }
	two := append(gzipped(one("c")[:1024]), gzipped(one("c")[1024:])...)
	got, err := merged(t, []Layer{layerOf(gzipped(one("a"))), layerOf(zstded(one("b"))), layerOf(two), layerOf(one("d"))}, Limits{})
	if err != nil || len(got) != 4 {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestALayerThatCannotBeOpenedOrChangesIsNamed(t *testing.T) {
	broken := Layer{Open: func() (io.ReadCloser, error) { return nil, io.ErrClosedPipe }}
	if _, err := merged(t, []Layer{broken}, Limits{}); err == nil || err.Error() != "reading layer 1: opening: io: read/write on closed pipe" {
		t.Error(err)
	}
	for name, second := range map[string][]byte{"shorter": archive(aFile("x", "1")), "other": archive(aFile("x", "1"), aFile("y", "longer"))} {
		opened := 0
		changing := Layer{Open: func() (io.ReadCloser, error) {
			if opened++; opened == 1 {
				return io.NopCloser(bytes.NewReader(archive(aFile("x", "1"), aFile("y", "2")))), nil
			}
			return io.NopCloser(bytes.NewReader(second)), nil
		}}
		if _, err := merged(t, []Layer{changing}, Limits{}); !errors.Is(err, errChanged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// cancels cancels a context when something has been written or read.
type cancels struct {
	cancel context.CancelFunc
	bytes  int
}

func (c *cancels) Write(p []byte) (int, error) {
	c.cancel()
	c.bytes += len(p)
	return len(p), nil
}

func TestACancelledMergeStopsSoon(t *testing.T) {
	layer := layerOf(zeros(t, "large", 64<<20))
	ctx, cancel := context.WithCancel(t.Context())
	image, err := Read(ctx, []Layer{layer}, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	out := &cancels{cancel: cancel}
	if err := image.WriteTar(ctx, out); !errors.Is(err, context.Canceled) || out.bytes > 4<<20 {
		t.Errorf("got %v after %d bytes", err, out.bytes)
	}
	if _, err := Read(ctx, []Layer{layer}, Limits{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
