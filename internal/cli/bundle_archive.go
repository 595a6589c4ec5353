// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path"
	"time"
)

// archive is a tar.gz that is written.
type archive struct {
	zip *gzip.Writer
	tar *tar.Writer
	// directory is the one that all files are in, and time is theirs.
	directory string
	time      time.Time
}

func newArchive(out io.Writer, directory string, at time.Time) *archive {
	zip := gzip.NewWriter(out)
	return &archive{zip: zip, tar: tar.NewWriter(zip), directory: directory, time: at}
}

// add adds a file that its owner alone can read.
func (a *archive) add(name string, content []byte) error {
	header := &tar.Header{Typeflag: tar.TypeReg, Name: path.Join(a.directory, name), Size: int64(len(content)), Mode: 0o600, ModTime: a.time}
	err := a.tar.WriteHeader(header)
	if err == nil {
		_, err = a.tar.Write(content)
	}
	if err != nil {
		return fmt.Errorf("writing %s to the archive: %w", name, err)
	}
	return nil
}

// close writes the end.
func (a *archive) close() error {
	if err := errors.Join(a.tar.Close(), a.zip.Close()); err != nil {
		return fmt.Errorf("writing the end of the archive: %w", err)
	}
	return nil
}
