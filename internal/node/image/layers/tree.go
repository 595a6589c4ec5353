// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"errors"
	"slices"
	"strings"
)

var (
	errThroughSymlink = errors.New("the name goes through a symbolic link of the same layer")
	errRoot           = errors.New("the root is not a directory")
	errLinkTarget     = errors.New("no entry before the hard link has the name that it is to")
	errLinkDirectory  = errors.New("the hard link is to a directory")
)

type kind uint8

const (
	directory kind = iota
	file
	symlink
	fifo
	// dropped is an entry that hides lower ones and is not written: a device.
	dropped
)

// inode has the attributes of a file, and where its content is. Hard links share one.
type inode struct {
	// layer and ordinal say which entry has the content: layers count from 1, entries from 0.
	layer   uint16
	kind    kind
	mode    uint16
	ordinal uint32
	mtime   uint32
	size    int64
	// attributes are the extended ones of a directory. Those of a file are read again when it is written.
	attributes map[string]string
	// first is the name under which the file is written. It is set when the tree is complete.
	first *node
}

// node is a name in the tree. Layers are applied from the lowest up, and nothing is searched for what a whiteout hides: a cut says from
// which layer on names count.
type node struct {
	name     string
	parent   *node
	children *children
	inode    *inode
	// declared is the layer whose entry gave the inode, 0 for a directory that only names below it imply.
	declared uint16
	// touched is the highest layer with an entry for the name or for one below it.
	touched uint16
	// cut is the layer that hides what lower ones have of the name, and below it.
	cut uint16
	// cutBelow is the layer that hides what lower ones have below the name.
	cutBelow uint16
}

// mapFrom is the size of a directory from which a map pays.
const mapFrom = 16

type children struct {
	list   []*node
	byName map[string]*node
}

func (n *node) child(name string) *node {
	switch {
	case n.children == nil:
		return nil
	case n.children.byName != nil:
		return n.children.byName[name]
	}
	for _, c := range n.children.list {
		if c.name == name {
			return c
		}
	}
	return nil
}

func (n *node) add(c *node) {
	if n.children == nil {
		n.children = &children{}
	}
	all := n.children
	all.list = append(all.list, c)
	switch {
	case all.byName != nil:
		all.byName[c.name] = c
	case len(all.list) > mapFrom:
		all.byName = make(map[string]*node, 2*len(all.list))
		for _, other := range all.list {
			all.byName[other.name] = other
		}
	}
}

// path returns the name relative to the root.
func (n *node) path() string {
	if n.parent == nil {
		return ""
	}
	var parts []string
	for ; n.parent != nil; n = n.parent {
		parts = append(parts, n.name)
	}
	slices.Reverse(parts)
	return strings.Join(parts, "/")
}

// tree is what the layers so far add up to.
type tree struct {
	limits Limits
	root   *node
	// implied is the inode of directories that no entry declares.
	implied *inode
	meter   *meter
	names   int
}

func newTree(limits Limits, m *meter) *tree {
	implied := &inode{kind: directory, mode: 0o755}
	return &tree{limits: limits, meter: m, implied: implied, root: &node{inode: implied}}
}

// Bytes that a name and a file take: their structs, a pointer in a list and a share of a map.
const (
	nodeBytes  = 120
	inodeBytes = 48
)

// enter returns the child of a directory that an entry of a layer is about or goes through, and the cut that counts for it. It makes one if
// there is none, and forgets what is hidden.
func (t *tree) enter(dir *node, cut uint16, name string, layer uint16) (*node, uint16, error) {
	cut = max(cut, dir.cutBelow)
	c := dir.child(name)
	if c == nil {
		if dir.children != nil && len(dir.children.list) >= t.limits.DirectoryEntries {
			return nil, 0, &LimitError{"names in one directory", int64(t.limits.DirectoryEntries)}
		}
		if t.names++; t.names > t.limits.Entries {
			return nil, 0, &LimitError{"names", int64(t.limits.Entries)}
		}
		if err := t.meter.charge(nodeBytes + int64(len(name))); err != nil {
			return nil, 0, err
		}
		c = &node{name: strings.Clone(name), parent: dir, inode: t.implied}
		dir.add(c)
	}
	cut = max(cut, c.cut)
	if c.touched < cut {
		c.children = nil
	}
	if c.declared < cut {
		c.inode, c.declared = t.implied, 0
	}
	c.touched = layer
	return c, cut, nil
}

// at returns the node of a clean name that an entry is about. Directories above it come into being, as in an overlay of unpacked layers:
// where a lower layer has a file or a symbolic link, a directory takes its place. A symbolic link of the same layer is refused, because
// the layer's maker has meant the directory behind it.
func (t *tree) at(rel string, layer uint16) (*node, error) {
	n, cut := t.root, uint16(0)
	n.touched = layer
	for rel != "" {
		if n.inode.kind != directory {
			if n.inode.kind == symlink && n.declared == layer {
				return nil, errThroughSymlink
			}
			n.inode, n.declared = t.implied, 0
		}
		var part string
		part, rel, _ = strings.Cut(rel, "/")
		var err error
		if n, cut, err = t.enter(n, cut, part, layer); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// set gives a name what an entry of a layer has for it.
func (t *tree) set(rel string, layer uint16, i *inode) error {
	cost := int64(inodeBytes)
	for record, value := range i.attributes {
		cost += int64(nodeBytes + len(record) + len(value))
	}
	if err := t.meter.charge(cost); err != nil {
		return err
	}
	n, err := t.at(rel, layer)
	if err != nil {
		return err
	}
	if i.kind != directory {
		n.children = nil
	}
	n.inode, n.declared = i, layer
	return nil
}

// find returns what a clean name is at present, or nil.
func (t *tree) find(rel string) *inode {
	n, cut := t.root, uint16(0)
	for rel != "" {
		var part string
		part, rel, _ = strings.Cut(rel, "/")
		cut = max(cut, n.cutBelow)
		if n = n.child(part); n == nil {
			return nil
		}
		if cut = max(cut, n.cut); n.touched < cut {
			return nil
		}
	}
	if n.declared < cut {
		return t.implied
	}
	return n.inode
}

// link gives a name the file of another one.
func (t *tree) link(rel, target string, layer uint16) error {
	i := t.find(target)
	switch {
	case inDev(target):
		i = &inode{kind: dropped}
	case i == nil:
		return errLinkTarget
	case i.kind == directory:
		return errLinkDirectory
	}
	return t.set(rel, layer, i)
}

// hide applies a whiteout of a layer. There is nothing to hide where no node is.
func (t *tree) hide(rel string, layer uint16, childrenOnly bool) {
	n := t.root
	for rel != "" && n != nil {
		var part string
		part, rel, _ = strings.Cut(rel, "/")
		n = n.child(part)
	}
	switch {
	case n == nil:
	case childrenOnly:
		n.cutBelow = layer
	default:
		n.cut = layer
	}
}

// walk calls visit for all names that are not hidden, directories before what is in them.
func (t *tree) walk(visit func(*node)) {
	var walk func(n *node, cut uint16)
	walk = func(n *node, cut uint16) {
		if n.declared < cut {
			n.inode = t.implied
		}
		visit(n)
		if n.children == nil {
			return
		}
		below := max(cut, n.cutBelow)
		for _, c := range n.children.list {
			if own := max(below, c.cut); c.touched >= own {
				walk(c, own)
			}
		}
	}
	walk(t.root, 0)
}
