// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"cmp"
	"fmt"
)

// Limits bounds what an image may cost. A field that is zero has its default.
type Limits struct {
	// Layers is how many layers an image may have, 65,535 at most. The default is 500.
	Layers int
	// Entries is how many entries all layers may have together, and how many names, also hidden ones, may come of them. The default is
	// 2,000,000.
	Entries int
	// DirectoryEntries is how many names one directory may have. sqfstar takes quadratic time for them. The default is 100,000.
	DirectoryEntries int
	// Bytes is how much all layers may have uncompressed. A sparse file counts with its whole size. The default is 256 GiB.
	Bytes int64
	// NameBytes is how long one component of a path may be. The default is 255, which is what Linux can open.
	NameBytes int
	// PathBytes is how long a whole name may be. The default is 4095, which is what Linux can open.
	PathBytes int
	// Depth is how many components a path may have. The default is 256.
	Depth int
	// Ratio is how many times the compressed size of all layers the uncompressed one may be. It is looked at above 1 GiB. The default is 200.
	Ratio int64
	// Memory is how many bytes the names and attributes may take while layers are merged; it is an estimate. The default is 1 GiB.
	Memory int64
}

// maxLayers is how many layers a number of 16 bits can count.
const maxLayers = 1<<16 - 1

// ratioFrom is the uncompressed size up to which no ratio is too high: small layers of zeros do no harm.
const ratioFrom = 1 << 30

// maxLinkBytes is how long the target of a symbolic link may be: Linux opens none that is longer.
const maxLinkBytes = 4095

// maxAttributeBytes is how much the extended attributes of one file may take with their names. ext4 has the same limit.
const maxAttributeBytes = 4 << 10

func (l Limits) withDefaults() Limits {
	return Limits{
		Layers:           min(cmp.Or(l.Layers, 500), maxLayers),
		Entries:          cmp.Or(l.Entries, 2_000_000),
		DirectoryEntries: cmp.Or(l.DirectoryEntries, 100_000),
		Bytes:            cmp.Or(l.Bytes, 256<<30),
		NameBytes:        cmp.Or(l.NameBytes, 255),
		PathBytes:        cmp.Or(l.PathBytes, 4095),
		Depth:            cmp.Or(l.Depth, 256),
		Ratio:            cmp.Or(l.Ratio, 200),
		Memory:           cmp.Or(l.Memory, 1<<30),
	}
}

// LimitError is returned for an image that is over one of the limits.
type LimitError struct {
	// Limit is what is limited: "names in one directory".
	Limit string
	// Max is the value of the limit.
	Max int64
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("more than %d %s", e.Max, e.Limit)
}

// EntryError is returned for a layer that cannot be merged.
type EntryError struct {
	// Layer is the number of the layer. The lowest is 1.
	Layer int
	// Entry is the name of the entry as the layer has it; empty before the first one.
	Entry string
	// After is true if the layer cannot be read from somewhere in or behind the entry on.
	After bool
	// Err is what is wrong.
	Err error
}

// maxPrintedName is how much of a name is in a message: a hostile one may have a megabyte.
const maxPrintedName = 200

func (e *EntryError) Error() string {
	name := e.Entry
	if len(name) > maxPrintedName {
		name = name[:maxPrintedName] + "..."
	}
	switch {
	case e.Entry == "":
		return fmt.Sprintf("reading layer %d: %v", e.Layer, e.Err)
	case e.After:
		return fmt.Sprintf("reading layer %d from entry %q on: %v", e.Layer, name, e.Err)
	default:
		return fmt.Sprintf("merging entry %q of layer %d: %v", name, e.Layer, e.Err)
	}
}

func (e *EntryError) Unwrap() error { return e.Err }
