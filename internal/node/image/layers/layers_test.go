// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"archive/tar"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// f is what a plain file is in the result.
func f(content string) string { return `file 644 1000 "` + content + `"` }

const (
	implied = "dir 755 0"
	plain   = "dir 755 2000"
)

type names = map[string]string

func TestLayersAddUp(t *testing.T) {
	for _, tc := range []struct {
		name   string
		layers [][]entry
		want   names
	}{
		{"the file of an upper layer hides that of a lower one", [][]entry{{aFile("a", "1"), aFile("b", "1")}, {aFile("a", "2")}},
			names{"a": f("2"), "b": f("1")}},
		{"the last of two entries with one name counts", [][]entry{{aFile("a", "1"), aFile("a", "2")}}, names{"a": f("2")}},
		{"a directory of two layers has the attributes of the upper and the children of both",
			[][]entry{{aDir("d", 0o711), aFile("d/a", "1")}, {aDir("d/", 0o755), aFile("d/b", "2")}},
			names{"d": plain, "d/a": f("1"), "d/b": f("2")}},
		{"a directory that an upper layer only implies keeps its attributes",
			[][]entry{{aDir("d", 0o711), aFile("d/a", "1")}, {aFile("d/b", "2")}},
			names{"d": "dir 711 2000", "d/a": f("1"), "d/b": f("2")}},
		{"a directory without an entry is readable", [][]entry{{aFile("p/q/a", "1")}}, names{"p": implied, "p/q": implied, "p/q/a": f("1")}},
		{"a directory may come after what is in it", [][]entry{{aFile("d/a", "1"), aDir("d", 0o755)}}, names{"d": plain, "d/a": f("1")}},
		{"a file over a directory hides what was in it, for good",
			[][]entry{{aFile("d/a", "1")}, {aFile("d", "2")}, {aDir("d", 0o755)}}, names{"d": plain}},
		{"a directory takes the place of a file", [][]entry{{aFile("d", "1")}, {aDir("d", 0o755), aFile("d/a", "2")}},
			names{"d": plain, "d/a": f("2")}},
		{"an implied directory takes the place of a file", [][]entry{{aFile("d", "1")}, {aFile("d/a", "2")}}, names{"d": implied, "d/a": f("2")}},
		{"an implied directory takes the place of a symbolic link of a lower layer",
			[][]entry{{aDir("usr", 0o755), aSymlink("lib", "usr")}, {aFile("lib/a", "2")}}, names{"usr": plain, "lib": implied, "lib/a": f("2")}},
		{"a symbolic link may point anywhere", [][]entry{{aSymlink("a", "../../etc"), aSymlink("b", "/x")}},
			names{"a": "-> ../../etc", "b": "-> /x"}},

		{"a whiteout hides a file", [][]entry{{aFile("a", "1"), aFile("b", "1")}, {aFile(".wh.a", "")}},
			names{"b": f("1")}},
		{"a whiteout hides a directory and all below it", [][]entry{{aFile("d/e/a", "1")}, {aFile("d/.wh.e", "")}}, names{"d": implied}},
		{"a whiteout before an entry of its layer leaves it", [][]entry{{aFile("a", "1")}, {aFile(".wh.a", ""), aFile("a", "2")}},
			names{"a": f("2")}},
		{"a whiteout behind an entry of its layer leaves it", [][]entry{{aFile("a", "1")}, {aFile("a", "2"), aFile(".wh.a", "")}},
			names{"a": f("2")}},
		{"a whiteout takes from a directory what is of lower layers, and its attributes",
			[][]entry{{aDir("d", 0o711), aFile("d/a", "1")}, {aFile("d/b", "2"), aFile(".wh.d", "")}}, names{"d": implied, "d/b": f("2")}},
		{"a directory can come back after a whiteout, empty",
			[][]entry{{aDir("d", 0o711), aFile("d/a", "1")}, {aFile(".wh.d", "")}, {aFile("d/c", "3")}}, names{"d": implied, "d/c": f("3")}},
		{"an opaque directory hides what lower layers have in it, wherever the mark stands",
			[][]entry{{aFile("d/a", "1"), aFile("d/e/a", "1")}, {aDir("d", 0o755), aFile("d/b", "2"), aFile("d/e/b", "2"), aFile("d/.wh..wh..opq",
				"")}},
			names{"d": plain, "d/b": f("2"), "d/e": implied, "d/e/b": f("2")}},
		{"an opaque mark does not hide what upper layers add",
			[][]entry{{aFile("d/a", "1")}, {aFile("d/.wh..wh..opq", "")}, {aFile("d/a", "3")}},
			names{"d": implied, "d/a": f("3")}},
		{"an opaque root hides everything", [][]entry{{aFile("a", "1")}, {aFile(".wh..wh..opq", ""), aFile("b", "2")}}, names{"b": f("2")}},
		{"a whiteout of nothing is nothing", [][]entry{{aFile("a", "1"), aFile(".wh.x", ""), aFile("p/.wh.y", "")}}, names{"a": f("1")}},
		{"a whiteout does not go through a symbolic link",
			[][]entry{{aFile("d/a", "1"), aSymlink("s", "d")}, {aFile("s/.wh.a", "")}}, names{"d": implied, "d/a": f("1"), "s": "-> d"}},
		{"files of aufs are left out", [][]entry{{aDir(".wh..wh.plnk", 0o700), aFile(".wh..wh.plnk/1.2", "x"), aFile(".wh..wh.aufs", ""),
			aFile("a", "1")}},
			names{"a": f("1")}},

		{"a hard link is one", [][]entry{{aFile("a", "1"), aLink("b", "a"), aLink("z/c", "/b")}},
			names{"a": f("1") + " = a b z/c", "b": f("1") + " = a b z/c", "z": implied, "z/c": f("1") + " = a b z/c"}},
		{"a hard link to a lower layer has its file", [][]entry{{aFile("a", "1")}, {aLink("b", "./a")}},
			names{"a": f("1") + " = a b", "b": f("1") + " = a b"}},
		{"a hard link keeps the content of a file that an upper layer hides", [][]entry{{aFile("a", "1"), aLink("b", "a")}, {aFile("a", "2")}},
			names{"a": f("2"), "b": f("1")}},
		{"a hard link keeps the content of a file of which nothing else is left", [][]entry{{aFile("d/a", "1"), aLink("b", "d/a"), aLink("c",
			"b")}, {aFile(".wh.d", "")}},
			names{"b": f("1") + " = b c", "c": f("1") + " = b c"}},
		{"a hard link to a symbolic link is that link", [][]entry{{aSymlink("a", "x"), aLink("b", "a")}},
			names{"a": "-> x = a b", "b": "-> x = a b"}},
		{"a hard link to itself changes nothing", [][]entry{{aFile("a", "1"), aLink("a", "a")}}, names{"a": f("1")}},

		{"names are taken inside of the root", [][]entry{{aFile("/a", "1"), aFile("./b", "1"), aFile("x/../c", "1"), aFile("//d///e", "1")}},
			names{"a": f("1"), "b": f("1"), "c": f("1"), "d": implied, "d/e": f("1")}},
		{"names may have any byte", [][]entry{{aFile("a\nb", "1"), aFile("-r", "1"), aFile("é", "1"), aFile("raw\xff", "1"), aFile("..a", "1"),
			aFile("x.wh.y", "1")}},
			names{"a\nb": f("1"), "-r": f("1"), "é": f("1"), "raw\xff": f("1"), "..a": f("1"), "x.wh.y": f("1")}},
		{"long names are kept", [][]entry{{aFile(strings.Repeat("n", 255)+"/"+strings.Repeat("m", 255), "1")}},
			names{strings.Repeat("n", 255): implied, strings.Repeat("n", 255) + "/" + strings.Repeat("m", 255): f("1")}},

		{"devices are left out and hide what was there, pipes stay", [][]entry{{aFile("a", "1"), aFile("b", "1")},
			{special("a", tar.TypeChar), special("b", tar.TypeBlock), special("p", tar.TypeFifo), aLink("c", "a")}}, names{"p": "type 6 666"}},
		{"nothing is below /dev", [][]entry{{aDir("dev", 0o755), special("dev/null", tar.TypeChar), aFile("dev/shm/x", "1"), aLink("null",
			"dev/null")}}, names{"dev": plain}},
		{"set-id bits are cleared, the owner reads everything", [][]entry{{
			aFile("su", "").with(func(h *tar.Header) { h.Mode, h.Uid, h.Gid = 0o6711, 5, 6 }), aFile("x",
				"").with(func(h *tar.Header) { h.Mode = 0o011 }),
			aFile("none", "").with(func(h *tar.Header) { h.Mode = 0 }), aDir("d", 0o1077), aDir("e", 0)}},
			names{"su": `file 711 1000 ""`, "x": `file 511 1000 ""`, "none": `file 400 1000 ""`, "d": "dir 1777 2000", "e": "dir 700 2000"}},
		{"attributes of users are kept, those that give rights are not", [][]entry{{
			aFile("a", "1").attribute("user.k", "v\x00w").attribute("security.capability", "c").attribute("trusted.x",
				"t").attribute("user.overlay.opaque", "y"),
			aDir("d", 0o755).attribute("user.k", "v").attribute("user.containers.override_stat", "0:0").attribute("user.", "y"),
			aSymlink("s", "a").attribute("user.k", "v")}}, names{"a": f("1") + " user.k=v\x00w", "d": plain + " user.k=v", "s": "-> a"}},
		{"times that squashfs cannot have are the nearest that it can", [][]entry{{
			aFile("a", "").with(func(h *tar.Header) { h.ModTime = time.Unix(-5, 0) }), aFile("b",
				"").with(func(h *tar.Header) { h.ModTime = time.Unix(1<<40, 0) })}},
			names{"a": `file 644 0 ""`, "b": `file 644 4294967295 ""`}},
		{"comments of git are left out", [][]entry{{{tar.Header{Typeflag: tar.TypeXGlobalHeader, Name: "pax_global_header",
			PAXRecords: names{"comment": "x"}}, ""}, aFile("a", "1")}},
			names{"a": f("1")}},
		{"an image may be empty", [][]entry{{}}, names{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := merged(t, layersOf(tc.layers), Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheRootHasTheAttributesOfItsHighestEntry(t *testing.T) {
	root := aDir("./", 0o1755)
	image, err := Read(t.Context(), layersOf([][]entry{{aDir("/", 0o700)}, {root, aFile("a", "content")}, {aFile("b", "2"), aFile(".wh.a",
		"")}}), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	got := image.Summary()
	if got.Compressed != got.Uncompressed || got.Compressed < 3*3*512 {
		t.Errorf("plain layers have %d bytes, and %d uncompressed", got.Compressed, got.Uncompressed)
	}
	got.Compressed, got.Uncompressed = 0, 0
	if diff := cmp.Diff(Summary{Files: 1, Hidden: 3, Bytes: 1, RootMode: 0o1755, RootTime: 2000}, got); diff != "" {
		t.Error(diff)
	}
}
