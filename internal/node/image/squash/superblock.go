// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package squash

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Where the superblock has what Check reads (Linux, fs/squashfs/squashfs_fs.h, struct squashfs_super_block).
const (
	superblockSize = 96
	magic          = "hsqs"
	majorAt        = 28
	minorAt        = 30
	usedAt         = 40
	version        = 4
)

// Check returns why a file of a size is not a whole squashfs. It reads no more than the beginning of the file, so that nil does not mean
// that squashfuse can read all of it. Errors are ends of a sentence that begins with the file's name.
func Check(file io.ReaderAt, size int64) error {
	var block [superblockSize]byte
	n, err := file.ReadAt(block[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("cannot be read: %w", err)
	}
	if n < len(magic) || string(block[:len(magic)]) != magic {
		return errors.New("is no squashfs file")
	}
	if n < superblockSize {
		return fmt.Errorf("is cut off: it has %d bytes", n)
	}
	if major, minor := binary.LittleEndian.Uint16(block[majorAt:]), binary.LittleEndian.Uint16(block[minorAt:]); major != version {
		return fmt.Errorf("is a squashfs of version %d.%d: make one of version %d.0", major, minor, version)
	}
	if used := binary.LittleEndian.Uint64(block[usedAt:]); used > uint64(max(size, 0)) {
		return fmt.Errorf("is cut off: it has %d of %d bytes", size, used)
	}
	return nil
}
