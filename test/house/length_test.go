// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package house

import (
	"bytes"
	"testing"
)

// maxLines is how long a file may be that people write. A longer one is about two things.
const maxLines = 400

func TestFilesAreShort(t *testing.T) {
	for path, text := range written(t) {
		if lines := bytes.Count(text, []byte("\n")); lines > maxLines {
			t.Errorf("%s has %d lines, more than %d: split it by what it is about", path, lines, maxLines)
		}
	}
}
