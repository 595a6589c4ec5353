// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package squash

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
)

// superblock returns the beginning of a squashfs.
func superblock(major, minor uint16, used uint64) []byte {
	block := append([]byte(magic), make([]byte, superblockSize-len(magic))...)
	binary.LittleEndian.PutUint16(block[majorAt:], major)
	binary.LittleEndian.PutUint16(block[minorAt:], minor)
	binary.LittleEndian.PutUint64(block[usedAt:], used)
	return block
}

func TestAFileThatIsNoWholeSquashfsIsRefusedWithTheReason(t *testing.T) {
	for name, test := range map[string]struct {
		content []byte
		size    int64
		want    string
	}{
		"a squashfs":                    {superblock(4, 0, 200), 4096, ""},
		"nothing":                       {nil, 0, "is no squashfs file"},
		"less than the magic":           {[]byte("hs"), 2, "is no squashfs file"},
		"something else":                {bytes.Repeat([]byte("x"), 100), 100, "is no squashfs file"},
		"big-endian, before 4.0":        {[]byte("sqsh" + strings.Repeat("x", 100)), 104, "is no squashfs file"},
		"less than the superblock":      {[]byte("hsqs123"), 7, "is cut off: it has 7 bytes"},
		"less than the superblock says": {superblock(4, 0, 200), 199, "is cut off: it has 199 of 200 bytes"},
		"more than there can be":        {superblock(4, 0, 1<<63), 1 << 40, "is cut off: it has 1099511627776 of 9223372036854775808 bytes"},
		"an old version":                {superblock(3, 1, 200), 4096, "is a squashfs of version 3.1: make one of version 4.0"},
	} {
		err := Check(bytes.NewReader(test.content), test.size)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func FuzzCheck(f *testing.F) {
	f.Add(superblock(4, 0, 96), int64(96))
	f.Add([]byte("hsqs"), int64(-1))
	f.Fuzz(func(t *testing.T, content []byte, size int64) {
		err := Check(bytes.NewReader(content), size)
		if err == nil && (len(content) < superblockSize || size <= 0 && binary.LittleEndian.Uint64(content[usedAt:]) > 0) {
			t.Errorf("%d bytes of %d are taken", len(content), size)
		}
	})
}

func FuzzParseIDs(f *testing.F) {
	f.Add("1 2 3")
	f.Fuzz(func(t *testing.T, text string) {
		ids, err := parseIDs(strings.Fields(text))
		if err == nil && len(ids) < 2 {
			t.Errorf("%q are %v", text, ids)
		}
		for _, id := range ids {
			if id < 0 || id > 1<<32-1 {
				t.Errorf("%q are %v", text, ids)
			}
		}
	})
}
