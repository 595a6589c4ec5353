// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package layers merges the layers of a container image into one tar archive, of which sqfstar makes a read-only squashfs. No tree is
// unpacked on the way, so that a hostile image has no file system to escape into, and no half of an image is left if a node dies.
//
// Layers are read twice. Read applies their headers from the lowest layer up to a tree of names in memory, about 150 bytes each, and
// finds all that is wrong; it can do so while layers are downloaded. WriteTar copies the content of those entries that are still shown.
// Entries count as if they were unpacked one after the other, but a whiteout hides lower layers only, wherever it stands in its layer.
//
// The second reading costs the time of decompression. It is what makes an archive possible with each name once and a hard link after its
// file: sqfstar 4.5 to 4.7 crashes on a link before its file, ignores the second of two entries with one name, and stops if a name is a
// directory and a file.
//
// sqfstar it is, and not tar2sqfs, because it can leave files uncompressed, for the disk of a node, and comes in one package with the
// tools that save a container and read a squashfs. Both are as fast, and both report success for an archive that is cut between two
// entries.
//
// Where it is not needed: a squashfs that a user names by path is mounted as it is.
package layers
