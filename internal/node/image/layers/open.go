// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

var errUnfinished = errors.New("the layer ends without the two empty blocks that end a tar archive")

const (
	readBufferBytes = 256 << 10
	// maxWindow is how much zstd may look back. "zstd --ultra -22" has this window; without a limit, a header of a few bytes asks for
	// gigabytes.
	maxWindow = 128 << 20
)

// stream is a layer without its compression.
type stream struct {
	ctx      context.Context
	from     io.Reader
	meter    *meter
	closers  []func()
	last     [512]byte
	consumed int64
}

// counted counts compressed bytes.
type counted struct {
	from  io.Reader
	meter *meter
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	c.meter.compressed.Add(int64(n))
	return n, err
}

// openLayer finds out how a layer is compressed by its first bytes: media types are wrong at times.
func openLayer(ctx context.Context, layer Layer, m *meter) (*stream, error) {
	file, err := layer.Open()
	if err != nil {
		return nil, fmt.Errorf("opening: %w", err)
	}
	s := &stream{ctx: ctx, meter: m, closers: []func(){func() { _ = file.Close() }}}
	in := bufio.NewReaderSize(counted{file, m}, readBufferBytes)
	magic, err := in.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		s.close()
		return nil, err
	}
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		s.from, err = gzip.NewReader(in)
	case bytes.Equal(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}), len(magic) == 4 && magic[0]&0xf0 == 0x50 && bytes.Equal(magic[1:], []byte{0x2a,
		0x4d, 0x18}):
		var decoder *zstd.Decoder
		decoder, err = zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
		if err == nil {
			s.from, s.closers = decoder, append(s.closers, decoder.Close)
		}
	default:
		s.from, err = in, nil
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *stream) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := s.from.Read(p)
	s.consumed += int64(n)
	if n >= len(s.last) {
		copy(s.last[:], p[n-len(s.last):n])
	} else {
		copy(s.last[:], s.last[n:])
		copy(s.last[len(s.last)-n:], p[:n])
	}
	s.meter.stream.Add(int64(n))
	if limit := s.meter.check(); limit != nil {
		return n, limit
	}
	return n, err
}

// finish reads what is behind the end of the archive, so that a wrong checksum is found. To archive/tar, a stream that is cut between two
// entries has ended; here it has not.
func (s *stream) finish() error {
	if s.consumed == 0 || s.last != [512]byte{} {
		return errUnfinished
	}
	_, err := io.Copy(io.Discard, s)
	return err
}

func (s *stream) close() {
	for _, closer := range slices.Backward(s.closers) {
		closer()
	}
}
