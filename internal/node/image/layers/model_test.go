// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"archive/tar"
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// model applies layers one after the other to a map of names, in the plainest way: whiteouts of a layer before its entries.
type model struct {
	files map[string]*modelFile
}

type modelFile struct {
	entry entry
	// implied is true for a directory without an entry; layer is that of the entry.
	implied bool
	layer   int
}

func (m *model) removeBelow(name string) {
	for other := range m.files {
		if name == "" || strings.HasPrefix(other, name+"/") {
			delete(m.files, other)
		}
	}
}

func (m *model) remove(name string) {
	m.removeBelow(name)
	delete(m.files, name)
}

// parents makes the directories above a name, and reports whether that is allowed.
func (m *model) parents(name string, layer int) bool {
	dir := path.Dir(name)
	if dir == "." {
		return true
	}
	if !m.parents(dir, layer) {
		return false
	}
	old := m.files[dir]
	switch {
	case old == nil, old.entry.Typeflag == tar.TypeReg:
	case old.entry.Typeflag == tar.TypeSymlink:
		if old.layer == layer {
			return false
		}
	default:
		return true
	}
	m.files[dir] = &modelFile{entry: aDir(dir, 0o755), implied: true}
	return true
}

// apply applies a layer and returns its entries without those that are to be refused, and the layer up to the first of these.
func (m *model) apply(entries []entry, layer int) (accepted, refused []entry) {
	for _, e := range entries {
		dir, base := path.Split(e.Name)
		if base == ".wh..wh..opq" {
			m.removeBelow(strings.TrimSuffix(dir, "/"))
		} else if name, found := strings.CutPrefix(base, ".wh."); found {
			m.remove(dir + name)
		}
	}
	for _, e := range entries {
		if !isWhiteout(e) && !m.add(e, layer) {
			if refused == nil {
				refused = append(slices.Clone(accepted), e)
			}
			continue
		}
		accepted = append(accepted, e)
	}
	return accepted, refused
}

func isWhiteout(e entry) bool { return strings.HasPrefix(path.Base(e.Name), ".wh.") }

// add reports whether an entry may be added.
func (m *model) add(e entry, layer int) bool {
	file := &modelFile{entry: e, layer: layer}
	if e.Typeflag == tar.TypeLink {
		target := m.files[e.Linkname]
		if target == nil || target.entry.Typeflag == tar.TypeDir {
			return false
		}
		file.entry = target.entry
	}
	if !m.parents(e.Name, layer) {
		return false
	}
	if e.Typeflag != tar.TypeDir {
		m.remove(e.Name)
	}
	m.files[e.Name] = file
	return true
}

func (m *model) describe() map[string]string {
	out, same := map[string]string{}, map[string][]string{}
	for name, f := range m.files {
		switch {
		case f.implied:
			out[name] = implied
		case f.entry.Typeflag == tar.TypeDir:
			out[name] = fmt.Sprintf("dir %o 2000", f.entry.Mode)
		case f.entry.Typeflag == tar.TypeSymlink:
			out[name] = "-> " + f.entry.Linkname
			same[out[name]] = append(same[out[name]], name)
		default:
			out[name] = fmt.Sprintf("file 644 1000 %q", f.entry.content)
			same[out[name]] = append(same[out[name]], name)
		}
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

// someLayers draws layers over few names, so that they meet often. Each file has a content of its own.
func someLayers(t *rapid.T) [][]entry {
	name := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 1, 3).Draw(t, "parts"), "/")
	})
	number := 0
	one := func(t *rapid.T) entry {
		number++
		at := name.Draw(t, "name")
		dir, base := path.Split(at)
		switch rapid.IntRange(0, 9).Draw(t, "type") {
		case 0, 1:
			return aDir(at, rapid.SampledFrom([]int64{0o700, 0o711, 0o755}).Draw(t, "mode"))
		case 2:
			return aSymlink(at, fmt.Sprint("../", number))
		case 3, 4:
			return aLink(at, name.Draw(t, "target"))
		case 5:
			return aFile(dir+".wh."+base, "")
		case 6:
			return aFile(dir+".wh..wh..opq", "")
		default:
			return aFile(at, fmt.Sprint(number))
		}
	}
	var out [][]entry
	for range rapid.IntRange(1, 4).Draw(t, "layers") {
		var entries []entry
		for range rapid.IntRange(0, 7).Draw(t, "entries") {
			entries = append(entries, one(t))
		}
		out = append(out, entries)
	}
	return out
}

func TestMergedLayersAreThoseOfAPlainModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var layers [][]entry
		m := &model{files: map[string]*modelFile{}}
		for number, entries := range someLayers(t) {
			accepted, refused := m.apply(entries, number+1)
			// Whether a link finds what its own layer hides is the one case in which the place of a whiteout counts.
			if refused != nil && !slices.ContainsFunc(refused, isWhiteout) && !slices.ContainsFunc(entries, isWhiteout) {
				if got, err := merged(t, layersOf(append(slices.Clone(layers), refused)), Limits{}); err == nil {
					t.Fatalf("the model refuses %q, which has become %v", refused[len(refused)-1].Name, got)
				}
			}
			layers = append(layers, accepted)
		}
		got, err := merged(t, layersOf(layers), Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(m.describe(), got); diff != "" {
			t.Fatal(diff)
		}
	})
}

// FuzzHostileLayers merges two layers of any bytes: no name leaves the root, and what comes out is an archive that sqfstar can take.
func FuzzHostileLayers(f *testing.F) {
	f.Add(archive(aFile("a/b", "1"), aLink("c", "a/b")), archive(aFile("a/.wh.b", ""), aSymlink("s", "/etc")))
	f.Add(archive(aFile("../x", "1")), archive(aFile("/../../x", "1")))
	f.Add(archive(aSymlink("s", ".."), aFile("s/x", "1")), archive(aLink("x", "../../etc/passwd")))
	f.Add(gzipped(archive(aFile("a", "1"))), zstded(archive(aFile("a", "1").attribute("user.k", "v"))))
	f.Add(archive(special("dev/null", tar.TypeChar), aDir("d", 0)), archive(aFile("d/.wh..wh..opq", ""), aFile(".wh.d", "")))
	f.Fuzz(func(t *testing.T, lower, upper []byte) {
		limits, layers := Limits{Bytes: 1 << 20, Entries: 1000}, []Layer{layerOf(lower), layerOf(upper)}
		if _, err := Read(t.Context(), layers, limits); err != nil {
			return
		}
		got, err := merged(t, layers, limits)
		if err != nil {
			t.Fatalf("what was read without an error cannot be written: %v", err)
		}
		for name := range got {
			if name == "" || path.Clean("/"+name) != "/"+name || bytes.IndexByte([]byte(name), 0) >= 0 {
				t.Errorf("%q was written", name)
			}
		}
	})
}
