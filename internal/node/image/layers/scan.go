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
)

var (
	errType       = errors.New("the entry is of a type that no file system has")
	errLinkNul    = errors.New("the target of the link has a NUL byte")
	errLinkEmpty  = errors.New("the symbolic link has no target")
	errLinkLeaves = errors.New("the hard link is to a name outside of the image")
)

// change is what one entry of a layer means for the tree.
type change struct {
	name string
	// means is what a whiteout hides. The further fields are those of other entries.
	means whiteout
	// inode is nil for a hard link, which has a target.
	inode  *inode
	target string
	// cost is what the change takes in memory.
	cost int64
}

// Changes wait in batches, for a layer is read ahead of its turn. What waits is charged to the limit of memory.
const (
	batchChanges = 512
	batches      = 256
)

// scan reads one layer.
type scan struct {
	number  uint16
	changes chan []change
	// err is set before changes is closed.
	err error
	// entries is how many the layer has, set before changes is closed.
	entries int
}

// run reads the layer to its end and sends what its entries mean.
func (s *scan) run(ctx context.Context, layer Layer, m *meter) {
	defer close(s.changes)
	in, err := openLayer(ctx, layer, m)
	if err != nil {
		s.err = &EntryError{Layer: int(s.number), Err: err}
		return
	}
	defer in.close()
	archive := tar.NewReader(in)
	last := ""
	var batch []change
	for ordinal := uint32(0); ; ordinal++ {
		header, err := next(archive)
		if errors.Is(err, io.EOF) {
			err = in.finish()
			header = nil
		}
		if err != nil {
			s.err = &EntryError{Layer: int(s.number), Entry: last, After: true, Err: err}
		}
		if header == nil || err != nil {
			break
		}
		last = header.Name
		c, err := s.read(header, ordinal, m)
		if err != nil {
			s.err = &EntryError{Layer: int(s.number), Entry: last, Err: err}
			break
		}
		if batch = append(batch, c); len(batch) == batchChanges && !s.send(ctx, batch) {
			return
		} else if len(batch) == batchChanges {
			batch = nil
		}
	}
	s.send(ctx, batch)
}

func (s *scan) send(ctx context.Context, batch []change) bool {
	select {
	case s.changes <- batch:
		return true
	case <-ctx.Done():
		s.err = &EntryError{Layer: int(s.number), Err: ctx.Err()}
		return false
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

// read returns what an entry means.
func (s *scan) read(header *tar.Header, ordinal uint32, m *meter) (change, error) {
	s.entries++
	if err := m.addEntry(); err != nil {
		return change{}, err
	}
	if header.Typeflag == tar.TypeXGlobalHeader {
		return change{means: ignored}, nil
	}
	name, err := m.limits.clean(header.Name)
	if err != nil {
		return change{}, err
	}
	c := change{cost: nodeBytes}
	if c.means, c.name, err = readWhiteout(name); err != nil {
		return change{}, err
	}
	switch {
	case inDev(name):
		return change{means: ignored}, nil
	case c.means != notWhiteout:
	case header.Typeflag == tar.TypeLink:
		c.target, err = linkTarget(header.Linkname, m.limits)
	default:
		c.inode, err = s.inode(header, ordinal, m)
	}
	if err != nil {
		return change{}, err
	}
	if name == "" && (c.inode == nil || c.inode.kind != directory) {
		return change{}, errRoot
	}
	c.cost += int64(len(c.name) + len(c.target))
	if c.inode != nil {
		for record, value := range c.inode.attributes {
			c.cost += int64(nodeBytes + len(record) + len(value))
		}
	}
	return c, m.charge(c.cost)
}

func (s *scan) inode(header *tar.Header, ordinal uint32, m *meter) (*inode, error) {
	k, err := kindOf(header)
	if err != nil {
		return nil, err
	}
	i := &inode{layer: s.number, kind: k, mode: modeOf(header, k), ordinal: ordinal, mtime: timeOf(header.ModTime)}
	if k == file {
		if err := m.addFile(header.Size); err != nil {
			return nil, err
		}
		i.size = header.Size
	}
	attributes, err := attributesOf(header, k)
	if k == directory {
		i.attributes = maps.Clone(attributes)
	}
	return i, err
}

func linkTarget(target string, limits Limits) (string, error) {
	to, err := limits.clean(target)
	switch {
	case errors.Is(err, errLeavesRoot):
		return "", errLinkLeaves
	case errors.Is(err, errNul):
		return "", errLinkNul
	}
	return to, err
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
