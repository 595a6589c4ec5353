// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
)

var (
	errType       = errors.New("the entry is of a type that no file system has")
	errLinkNul    = errors.New("the target of the link has a NUL byte")
	errLinkEmpty  = errors.New("the symbolic link has no target")
	errNoLayers   = errors.New("the image has no layers")
	errLinkLeaves = errors.New("the hard link is to a name outside of the image")
)

// Layer is a tar archive, plain or compressed by gzip or zstd.
type Layer struct {
	// Open returns the layer from its beginning. It is called once or twice.
	Open func() (io.ReadCloser, error)
}

// Summary is what is known of a merged image before it is written.
type Summary struct {
	// Files is how many names the image has, without the root; Hidden is how many entries it does not show.
	Files, Hidden int
	// Bytes is the size of all files, hard links once.
	Bytes int64
	// Compressed and Uncompressed are the sizes of the layers.
	Compressed, Uncompressed int64
	// RootMode and RootTime are the attributes of the root, in seconds since 1970. sqfstar does not take them from the archive.
	RootMode, RootTime uint32
}

// Image is what layers add up to. It can be written any number of times.
type Image struct {
	layers  []Layer
	limits  Limits
	summary Summary
	// directories come first in the archive, each after its parent.
	directories []*node
	// content has for each layer the files that come from it, in the order of its entries.
	content [][]*inode
	// links are the further names of a file.
	links map[*inode][]*node
}

// Summary returns what is known of the image.
func (i *Image) Summary() Summary { return i.summary }

// Read reads all layers, the lowest first, and returns what they add up to. It checks everything, so that nothing of a broken image is ever
// written: checksums, names, limits.
func Read(ctx context.Context, layers []Layer, limits Limits) (*Image, error) {
	limits = limits.withDefaults()
	if len(layers) == 0 {
		return nil, errNoLayers
	}
	if len(layers) > limits.Layers {
		return nil, fmt.Errorf("reading %d layers: %w", len(layers), &LimitError{"layers", int64(limits.Layers)})
	}
	r := &reader{tree: newTree(limits), meter: &meter{limits: limits}}
	for n, layer := range layers {
		if err := r.layer(ctx, layer, n+1); err != nil {
			return nil, err
		}
	}
	return r.image(layers), nil
}

// reader reads the entries of all layers.
type reader struct {
	tree    *tree
	meter   *meter
	entries int
}

func (r *reader) layer(ctx context.Context, layer Layer, number int) error {
	s, err := openLayer(ctx, layer, r.meter)
	if err != nil {
		return &EntryError{Layer: number, Err: err}
	}
	defer s.close()
	archive := tar.NewReader(s)
	last := ""
	for ordinal := uint32(0); ; ordinal++ {
		header, err := next(archive)
		switch {
		case errors.Is(err, io.EOF):
			if err := s.finish(); err != nil {
				return &EntryError{Layer: number, Entry: last, After: true, Err: err}
			}
			return nil
		case err != nil:
			return &EntryError{Layer: number, Entry: last, After: true, Err: err}
		}
		last = header.Name
		if err := r.entry(header, uint16(number), ordinal); err != nil {
			return &EntryError{Layer: number, Entry: last, Err: err}
		}
	}
}

// next returns the next header. archive/tar may be told to report names that leave the root; this package looks at them itself.
func next(archive *tar.Reader) (*tar.Header, error) {
	header, err := archive.Next()
	if errors.Is(err, tar.ErrInsecurePath) {
		err = nil
	}
	return header, err
}

// entry applies one entry of a layer.
func (r *reader) entry(header *tar.Header, layer uint16, ordinal uint32) error {
	if r.entries++; r.entries > r.tree.limits.Entries {
		return &LimitError{"entries", int64(r.tree.limits.Entries)}
	}
	if header.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	name, err := r.tree.limits.clean(header.Name)
	if err != nil {
		return err
	}
	means, name, err := readWhiteout(name)
	switch {
	case err != nil:
		return err
	case inDev(name), means == ignored:
		return nil
	case means != notWhiteout:
		r.tree.hide(name, layer, means == hidesChildren)
		return nil
	case header.Typeflag == tar.TypeLink:
		return r.link(name, header.Linkname, layer)
	}
	k, err := kindOf(header)
	if err != nil {
		return err
	}
	i := &inode{layer: layer, kind: k, mode: modeOf(header, k), ordinal: ordinal, mtime: timeOf(header.ModTime)}
	if k == file {
		if err := r.meter.addFile(header.Size); err != nil {
			return err
		}
		i.size = header.Size
	}
	attributes, err := attributesOf(header, k)
	if err != nil {
		return err
	}
	cost := int64(inodeBytes)
	if k == directory {
		i.attributes = maps.Clone(attributes)
		for name, value := range attributes {
			cost += int64(nodeBytes + len(name) + len(value))
		}
	}
	if err := r.tree.charge(cost); err != nil {
		return err
	}
	return r.tree.set(name, layer, i)
}

func (r *reader) link(name, target string, layer uint16) error {
	to, err := r.tree.limits.clean(target)
	switch {
	case errors.Is(err, errLeavesRoot):
		return errLinkLeaves
	case errors.Is(err, errNul):
		return errLinkNul
	case err != nil:
		return err
	}
	return r.tree.link(name, to, layer)
}

func kindOf(header *tar.Header) (kind, error) {
	switch header.Typeflag {
	case tar.TypeReg, tar.TypeCont, tar.TypeGNUSparse:
		return file, nil
	case tar.TypeDir:
		return directory, nil
	case tar.TypeFifo:
		return fifo, nil
	case tar.TypeChar, tar.TypeBlock:
		return dropped, nil
	case tar.TypeSymlink:
		switch {
		case header.Linkname == "":
			return 0, errLinkEmpty
		case len(header.Linkname) > maxLinkBytes:
			return 0, &LimitError{"bytes in the target of a symbolic link", maxLinkBytes}
		}
		return symlink, nil
	default:
		return 0, fmt.Errorf("%w: %q", errType, header.Typeflag)
	}
}

// image collects what the tree shows.
func (r *reader) image(layers []Layer) *Image {
	out := &Image{layers: layers, limits: r.tree.limits, content: make([][]*inode, len(layers)), links: map[*inode][]*node{}}
	shown := 0
	r.tree.walk(func(n *node) {
		i := n.inode
		if n.declared != 0 {
			shown++
		}
		switch {
		case i.kind == directory:
			out.directories = append(out.directories, n)
		case i.kind == dropped:
			return
		case i.first != nil:
			out.links[i] = append(out.links[i], n)
		default:
			i.first = n
			out.content[i.layer-1] = append(out.content[i.layer-1], i)
			out.summary.Bytes += i.size
		}
		out.summary.Files++
	})
	for _, files := range out.content {
		slices.SortFunc(files, func(a, b *inode) int { return int(a.ordinal) - int(b.ordinal) })
	}
	root := r.tree.root.inode
	out.summary.Files--
	out.summary.Hidden = r.entries - shown
	out.summary.Compressed, out.summary.Uncompressed = r.meter.compressed, r.meter.stream
	out.summary.RootMode, out.summary.RootTime = uint32(root.mode), root.mtime
	return out
}
