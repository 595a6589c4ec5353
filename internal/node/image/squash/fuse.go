// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package squash

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// fuseTimeout is how long squashfuse may take until it has mounted a file. Meanwhile nobody else gets a mount.
const fuseTimeout = 30 * time.Second

// byFUSE mounts a file by squashfuse, which shows all files as the owner's. One that has ended, or was killed, is started again.
func (m *Mounter) byFUSE(ctx context.Context, file string, owner Owner) (*os.File, error) {
	key := fuseKey{file, owner}
	if mount, ok := m.fuse[key]; ok {
		select {
		case <-mount.ended:
			m.detach(mount.dir)
			delete(m.fuse, key)
		default:
			return tree(mount.dir)
		}
	}
	dir, err := m.directory()
	if err != nil {
		return nil, err
	}
	ended, err := startFUSE(ctx, file, dir, owner)
	if err != nil {
		m.detach(dir)
		return nil, err
	}
	m.fuse[key] = fuseMount{dir, ended}
	return tree(dir)
}

// detach takes away a mount point with what is mounted there. Containers keep their clones.
func (m *Mounter) detach(dir string) {
	for unix.Unmount(dir, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW) == nil {
	}
	_ = os.Remove(dir) //nolint:gosec // a directory of ours
}

// startFUSE starts a squashfuse, and waits until it has mounted the file. It goes on when the context ends then.
func startFUSE(ctx context.Context, file, dir string, owner Owner) (<-chan struct{}, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, fuseTimeout, errors.New("squashfuse takes too long"))
	defer cancel()
	options := fmt.Sprintf("ro,nosuid,nodev,allow_other,uid=%d,gid=%d", owner.UID, owner.GID)
	command := exec.Command("squashfuse", "-f", "-o", options, file, dir) //nolint:gosec,noctx // arguments of ours; it outlives the request
	printed := &bounded{}
	command.Stderr = printed
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("starting squashfuse: %w", err)
	}
	ended, failed := make(chan struct{}), error(nil)
	go func() {
		failed = command.Wait()
		close(ended)
	}()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !isMounted(dir) {
		select {
		case <-ended:
			return nil, fmt.Errorf("squashfuse of %s has ended: %w: %s", file, failed, strings.TrimSpace(printed.text.String()))
		case <-ctx.Done():
			_ = command.Process.Kill()
			<-ended
			return nil, fmt.Errorf("mounting %s: %w", file, context.Cause(ctx))
		case <-tick.C:
		}
	}
	return ended, nil
}

// isMounted reports whether something is mounted at a directory. It asks no file system, which may not answer.
func isMounted(dir string) bool {
	var status unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, dir, unix.AT_STATX_DONT_SYNC|unix.AT_SYMLINK_NOFOLLOW, unix.STATX_TYPE, &status)
	return err == nil && status.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
}
