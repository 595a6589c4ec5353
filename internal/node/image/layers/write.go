// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"archive/tar"
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

var errChanged = errors.New("the layer is not the one that was read before")

const (
	writeBufferBytes = 1 << 20
	copyBufferBytes  = 256 << 10
)

// WriteTar writes the image as one tar archive: each name but the root once, directories first and after their parents, a hard link after
// its file. If there is an error, the archive has no end, and what has been made of it is to be thrown away: sqfstar 4.7 and tar2sqfs
// report success for an archive that ends between two entries. When the context is cancelled, reading stops; the caller closes w if
// nobody reads from it any more.
func (i *Image) WriteTar(ctx context.Context, w io.Writer) error {
	buffered := bufio.NewWriterSize(w, writeBufferBytes)
	out := &writer{image: i, archive: tar.NewWriter(buffered), buffer: make([]byte, copyBufferBytes)}
	for _, n := range i.directories[1:] { // not the root: sqfstar complains of an empty name
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := out.directory(n); err != nil {
			return fmt.Errorf("writing directory %q: %w", n.path(), err)
		}
	}
	for number, files := range i.content {
		if len(files) == 0 {
			continue
		}
		if err := out.layer(ctx, number+1, files); err != nil {
			return err
		}
	}
	if err := out.archive.Close(); err != nil {
		return fmt.Errorf("writing the end of the archive: %w", err)
	}
	if err := buffered.Flush(); err != nil {
		return fmt.Errorf("writing the end of the archive: %w", err)
	}
	return nil
}

type writer struct {
	image   *Image
	archive *tar.Writer
	buffer  []byte
}

func (w *writer) directory(n *node) error {
	i := n.inode
	return w.archive.WriteHeader(&tar.Header{
		Typeflag: tar.TypeDir, Name: n.path(), Mode: int64(i.mode), ModTime: time.Unix(int64(i.mtime), 0), PAXRecords: i.attributes,
	})
}

// layer writes those files of a layer that the image shows. It reads no further than to the last of them.
func (w *writer) layer(ctx context.Context, number int, files []*inode) error {
	s, err := openLayer(ctx, w.image.layers[number-1], &meter{limits: w.image.limits})
	if err != nil {
		return &EntryError{Layer: number, Err: err}
	}
	defer s.close()
	in := tar.NewReader(s)
	last := ""
	for ordinal := uint32(0); len(files) > 0; ordinal++ {
		header, err := next(in)
		if errors.Is(err, io.EOF) {
			err = errChanged
		}
		if err != nil {
			return &EntryError{Layer: number, Entry: last, After: true, Err: err}
		}
		last = header.Name
		if ordinal != files[0].ordinal {
			continue
		}
		if err := w.file(in, header, files[0]); err != nil {
			return &EntryError{Layer: number, Entry: last, Err: err}
		}
		files = files[1:]
	}
	return nil
}

// file writes a file and its further names.
func (w *writer) file(in io.Reader, header *tar.Header, i *inode) error {
	k, err := kindOf(header)
	if err != nil || k != i.kind || k == file && header.Size != i.size {
		return errChanged
	}
	first := i.first.path()
	attributes, err := attributesOf(header, k)
	if err != nil {
		return err
	}
	out := &tar.Header{Name: first, Mode: int64(i.mode), ModTime: time.Unix(int64(i.mtime), 0), PAXRecords: attributes}
	switch k {
	case symlink:
		out.Typeflag, out.Linkname = tar.TypeSymlink, header.Linkname
	case fifo:
		out.Typeflag = tar.TypeFifo
	default:
		out.Typeflag, out.Size = tar.TypeReg, i.size
	}
	if err := w.archive.WriteHeader(out); err != nil {
		return err
	}
	if k == file && i.size > 0 {
		if _, err := io.CopyBuffer(w.archive, in, w.buffer); err != nil {
			return err
		}
	}
	for _, n := range w.image.links[i] {
		link := &tar.Header{Typeflag: tar.TypeLink, Name: n.path(), Linkname: first, Mode: out.Mode, ModTime: out.ModTime}
		if err := w.archive.WriteHeader(link); err != nil {
			return err
		}
	}
	return nil
}

// sqfstarMemory is how much sqfstar may have on its way through its queues. Its tables of files come on top.
const sqfstarMemory = "512M"

// SqfstarArguments returns the arguments with which sqfstar makes a squashfs of the archive on its standard input.
//
//	argument               without it
//	-all-root              sqfstar takes the owners of the archive, which are 0 as well
//	-root-mode, -root-time the root has mode 777 and the present time: sqfstar ignores the archive's entry for it
//	-no-duplicates         sqfstar compares each file with all of its size: 10⁵ small files take minutes instead of seconds
//	-mem                   its queues take a quarter of the machine's memory, whatever the limit of the container
//	-exit-on-error         some errors are only printed
//
// Options of a compressor, like "-Xcompression-level 3", take sqfstar 4.6: the one of Debian 12 takes the value for the name of the file.
func (s Summary) SqfstarArguments(output, compressor string, options ...string) []string {
	arguments := append([]string{"-comp", compressor}, options...)
	return append(arguments, "-all-root", "-root-mode", fmt.Sprintf("%o", s.RootMode), "-root-time", fmt.Sprint(s.RootTime),
		"-no-duplicates", "-mem", sqfstarMemory, "-exit-on-error", "-quiet", "-no-progress", output)
}
