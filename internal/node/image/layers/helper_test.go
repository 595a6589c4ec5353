// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// entry makes a header. Further words set what the type does not.
type entry struct {
	tar.Header
	content string
}

func aFile(name, content string) entry {
	return entry{tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(content)), ModTime: time.Unix(1000, 0)}, content}
}

func aDir(name string, mode int64) entry {
	return entry{tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: mode, ModTime: time.Unix(2000, 0)}, ""}
}

func aLink(name, target string) entry {
	return entry{tar.Header{Typeflag: tar.TypeLink, Name: name, Linkname: target, Mode: 0o644}, ""}
}

func aSymlink(name, target string) entry {
	return entry{tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target, Mode: 0o777}, ""}
}

func special(name string, flag byte) entry {
	return entry{tar.Header{Typeflag: flag, Name: name, Mode: 0o666, Devmajor: 1, Devminor: 3}, ""}
}

func (e entry) with(change func(*tar.Header)) entry {
	change(&e.Header)
	return e
}

func (e entry) attribute(name, value string) entry {
	e.PAXRecords = maps.Clone(e.PAXRecords)
	if e.PAXRecords == nil {
		e.PAXRecords = map[string]string{}
	}
	e.PAXRecords[attributePrefix+name] = value
	return e
}

// archive returns a layer's bytes.
func archive(entries ...entry) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		if err := w.WriteHeader(&e.Header); err != nil {
			panic(err)
		}
		if _, err := io.WriteString(w, e.content); err != nil {
			panic(err)
		}
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return b.Bytes()
}

func layerOf(content []byte) Layer {
	return Layer{Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }}
}

func layersOf(all [][]entry) []Layer {
	var out []Layer
	for _, entries := range all {
		out = append(out, layerOf(archive(entries...)))
	}
	return out
}

// merged merges layers and returns what each name is. It fails if the archive is not one that sqfstar can take.
func merged(t interface {
	Helper()
	Errorf(string, ...any)
}, layers []Layer, limits Limits) (map[string]string, error) {
	t.Helper()
	var b bytes.Buffer
	summary, err := merge(context.Background(), &b, layers, limits)
	if err != nil {
		return nil, err
	}
	got, problems, err := describe(&b)
	if err != nil {
		return nil, fmt.Errorf("reading the result: %w", err)
	}
	for _, problem := range problems {
		t.Errorf("%s", problem)
	}
	if summary.Files != len(got) {
		t.Errorf("the summary has %d files, the archive %d", summary.Files, len(got))
	}
	return got, nil
}

// describe reads an archive of ours: what each name is, and what sqfstar would trip over.
func describe(in io.Reader) (map[string]string, []string, error) {
	out, kinds, names := map[string]string{}, map[string]byte{"": tar.TypeDir}, map[string][]string{}
	var problems []string
	archive := tar.NewReader(in)
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, nil, err
		}
		name := strings.TrimSuffix(h.Name, "/")
		parent, base := "", name
		if i := strings.LastIndexByte(name, '/'); i >= 0 {
			parent, base = name[:i], name[i+1:]
		}
		_, twice := kinds[name]
		switch {
		case twice:
			problems = append(problems, fmt.Sprintf("%q is there twice", name))
		case kinds[parent] != tar.TypeDir:
			problems = append(problems, fmt.Sprintf("%q comes before its directory", name))
		case base == "", base == ".", base == "..", strings.HasPrefix(base, ".wh."), strings.HasPrefix(name, "dev/"):
			problems = append(problems, fmt.Sprintf("%q is no name to be written", name))
		case h.Uid != 0, h.Gid != 0, h.Mode&0o6000 != 0, h.Mode&0o400 == 0:
			problems = append(problems, fmt.Sprintf("%q has owner %d:%d and mode %o", name, h.Uid, h.Gid, h.Mode))
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			return nil, nil, err
		}
		var more strings.Builder
		for _, record := range slices.Sorted(maps.Keys(h.PAXRecords)) {
			if attribute, found := strings.CutPrefix(record, attributePrefix); found {
				fmt.Fprintf(&more, " %s=%s", attribute, h.PAXRecords[record])
			}
		}
		kinds[name] = h.Typeflag
		switch h.Typeflag {
		case tar.TypeLink:
			first, found := names[h.Linkname]
			if !found {
				problems = append(problems, fmt.Sprintf("hard link %q comes before its file", name))
			}
			out[name] = out[h.Linkname]
			names[h.Linkname] = append(first, name)
			continue
		case tar.TypeSymlink:
			out[name] = "-> " + h.Linkname
		case tar.TypeDir:
			out[name] = fmt.Sprintf("dir %o %d%s", h.Mode, h.ModTime.Unix(), more.String())
			continue
		case tar.TypeReg:
			out[name] = fmt.Sprintf("file %o %d %q%s", h.Mode, h.ModTime.Unix(), content, more.String())
		default:
			out[name] = fmt.Sprintf("type %c %o", h.Typeflag, h.Mode)
		}
		names[name] = []string{name}
	}
	for _, same := range names {
		if slices.Sort(same); len(same) > 1 {
			for _, name := range same {
				out[name] += " = " + strings.Join(same, " ")
			}
		}
	}
	return out, problems, nil
}

// merge reads the layers, the lowest first, and writes what they add up to as one tar archive.
func merge(ctx context.Context, w io.Writer, layers []Layer, limits Limits) (Summary, error) {
	image, err := Read(ctx, layers, limits)
	if err != nil {
		return Summary{}, err
	}
	return image.Summary(), image.WriteTar(ctx, w)
}
