// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import "sync/atomic"

// meter counts what all layers have against the limits. Layers are read at the same time.
type meter struct {
	limits Limits
	// compressed and stream are bytes of layers, before and after decompression.
	compressed, stream atomic.Int64
	// content is the sum of the sizes of files, which is more than stream if they are sparse.
	content atomic.Int64
	entries atomic.Int64
	memory  atomic.Int64
}

func (m *meter) check() error {
	size := max(m.stream.Load(), m.content.Load())
	if size > m.limits.Bytes {
		return &LimitError{"bytes in all layers", m.limits.Bytes}
	}
	if size > ratioFrom && size/m.limits.Ratio > m.compressed.Load() {
		return &LimitError{"times the compressed size in all layers", m.limits.Ratio}
	}
	return nil
}

// addFile counts a file before its content is read.
func (m *meter) addFile(size int64) error {
	if size > m.limits.Bytes {
		return &LimitError{"bytes in all layers", m.limits.Bytes}
	}
	m.content.Add(size)
	return m.check()
}

func (m *meter) addEntry() error {
	if m.entries.Add(1) > int64(m.limits.Entries) {
		return &LimitError{"entries", int64(m.limits.Entries)}
	}
	return nil
}

// charge counts bytes of memory.
func (m *meter) charge(bytes int64) error {
	if m.memory.Add(bytes) > m.limits.Memory {
		return &LimitError{"bytes of memory for names and attributes", m.limits.Memory}
	}
	return nil
}

func (m *meter) release(bytes int64) { m.memory.Add(-bytes) }
