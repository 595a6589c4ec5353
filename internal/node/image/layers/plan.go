// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
)

var errNoLayers = errors.New("the image has no layers")

// Layer is a tar archive, plain or compressed by gzip or zstd.
type Layer struct {
	// Open returns the layer from its beginning. Read opens it once and reads it to its end, so that it may still be on its way from a
	// registry, and its digest may be checked by the reader. WriteTar opens it again, if the image shows files of it. Several layers are
	// open at a time.
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

// maxScans is how many layers are decompressed at a time: each uses a processor, and up to 256 batches of changes.
const maxScans = 4

// Read reads all layers, the lowest first, and returns what they add up to. It checks everything, so that nothing of a broken image is ever
// written: checksums, names, limits. Its error is an *EntryError, or a *LimitError about the number of layers. No layer is
// being read any more when it returns, so that one that comes by network has to end with the context.
func Read(ctx context.Context, layers []Layer, limits Limits) (*Image, error) {
	limits = limits.withDefaults()
	if len(layers) == 0 {
		return nil, errNoLayers
	}
	if len(layers) > limits.Layers {
		return nil, fmt.Errorf("reading %d layers: %w", len(layers), &LimitError{"layers", int64(limits.Layers)})
	}
	// Scans stop and are waited for, whichever way this ends.
	var running sync.WaitGroup
	defer running.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	m := &meter{limits: limits}
	t := newTree(limits, m)
	scans := make([]*scan, len(layers))
	started, entries := uint16(0), 0
	for n := range scans {
		for int(started) < min(len(layers), n+maxScans) {
			layer, s := layers[started], &scan{number: started + 1, changes: make(chan []change, batches)}
			scans[started] = s
			started++
			running.Go(func() { s.run(ctx, layer, m) })
		}
		if err := t.apply(scans[n]); err != nil {
			return nil, err
		}
		entries += scans[n].entries
		scans[n] = nil
	}
	image := t.image(layers)
	image.summary.Hidden = entries - image.summary.Hidden
	image.summary.Compressed, image.summary.Uncompressed = m.compressed.Load(), m.stream.Load()
	return image, nil
}

// apply waits for all changes of a layer.
func (t *tree) apply(s *scan) error {
	for batch := range s.changes {
		for _, c := range batch {
			t.meter.release(c.cost)
			var err error
			switch {
			case c.means == ignored:
			case c.means != notWhiteout:
				t.hide(c.name, s.number, c.means == hidesChildren)
			case c.inode == nil:
				err = t.link(c.name, c.target, s.number)
			default:
				err = t.set(c.name, s.number, c.inode)
			}
			if err != nil {
				return &EntryError{Layer: int(s.number), Entry: c.name, Err: err}
			}
		}
	}
	return s.err
}

// image collects what the tree shows. Hidden is how many entries are not hidden.
func (t *tree) image(layers []Layer) *Image {
	out := &Image{layers: layers, limits: t.limits, content: make([][]*inode, len(layers)), links: map[*inode][]*node{}}
	t.walk(func(n *node) {
		i := n.inode
		if n.declared != 0 {
			out.summary.Hidden++
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
	root := t.root.inode
	out.summary.Files-- // the root
	out.summary.RootMode, out.summary.RootTime = uint32(root.mode), root.mtime
	return out
}
