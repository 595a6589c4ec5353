// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package jail

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Coherent reports whether other machines that have the jail mounted see at once that a name stands for another file. Local file
// systems have no other machines. Lustre, CephFS and GPFS lock. Clients of NFS and SMB ask the server when they open a file. What
// is behind FUSE or virtiofs, and what is unknown here, may answer from a cache of names.
func (r *Root) Coherent() (bool, error) {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(r.dir.Fd()), &st); err != nil {
		return false, fmt.Errorf("asking which file system the jail is on: %w", err)
	}
	return coherent(st.Type), nil
}

func coherent(kind int64) bool {
	const (
		ceph   = 0x00c36400
		gpfs   = 0x47504653
		lustre = 0x0bd00bd0
		zfs    = 0x2fc12fc1
	)
	switch kind {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC, unix.TMPFS_MAGIC,
		unix.OVERLAYFS_SUPER_MAGIC, zfs, ceph, gpfs, lustre, unix.NFS_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC:
		return true
	}
	return false
}
