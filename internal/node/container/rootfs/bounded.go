// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package rootfs

import (
	"fmt"
	"io"
)

// maxFile bounds files of an image that are read.
const maxFile = 16 << 20

func readBounded(r io.Reader) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("reading a file of the image: %w", err)
	}
	if len(content) > maxFile {
		return nil, fmt.Errorf("a file of the image has more than %d bytes", maxFile)
	}
	return content, nil
}
