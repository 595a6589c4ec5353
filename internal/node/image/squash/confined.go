// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package squash

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// The files that OpenFile hands to "container squashfuse".
const (
	imageFD = 3 + iota
	replyFD
)

// The limits of a squashfuse. A hostile image may make it take what it can get.
const (
	maxDataBytes = 1 << 30
	maxFiles     = 64
	maxThreads   = 32
)

// Confined is what the program does as "container squashfuse UID GID [GROUP…]", in namespaces that OpenFile has made: it mounts a FUSE file
// system, sends the mount, gives up all rights, and becomes the squashfuse that serves it. It returns an error or not at all.
//
// The user namespace owns the file system, so that the kernel opens no device files of it and heeds no set-id bits, whatever a user does
// with the mount: the kernel lets users in a user namespace of their own clear nodev and nosuid of a mount that came to them as a file.
func Confined(arguments []string) error {
	ids, err := parseIDs(arguments)
	if err != nil {
		return err
	}
	// Some rights are those of a thread.
	runtime.LockOSThread()
	program, err := squashfuse()
	if err != nil {
		return err
	}
	// What else this process was started with is not for the user.
	if err := unix.CloseRange(replyFD+1, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("closing files: %w", err)
	}
	fuse, err := sendFUSE(ids[0], ids[1])
	if err != nil {
		return err
	}
	if err := hideNode(); err != nil {
		return err
	}
	if err := become(ids[0], ids[1], ids[2:]); err != nil {
		return err
	}
	options := fmt.Sprintf("ro,uid=%d,gid=%d", ids[0], ids[1])
	argv := []string{program, "-f", "-o", options, fmt.Sprintf("/proc/self/fd/%d", imageFD), fmt.Sprintf("/dev/fd/%d", fuse)}
	if err := syscall.Exec(program, argv, nil); err != nil { //nolint:gosec // arguments of ours
		return fmt.Errorf("starting squashfuse: %w", err)
	}
	return nil
}

// squashfuse returns the program to run: squashfuse_ll, which has several threads and takes half of the time, if it knows to whom files are to
// belong. That of Debian 12 does not.
func squashfuse() (string, error) {
	if path, err := exec.LookPath("squashfuse_ll"); err == nil {
		help, _ := exec.Command(path, "--help").CombinedOutput() //nolint:gosec,noctx // a program of the system, which ends
		if bytes.Contains(help, []byte("uid=")) {
			return path, nil
		}
	}
	path, err := exec.LookPath("squashfuse")
	if err != nil {
		return "", errors.New("squashfuse is not installed on this node")
	}
	return path, nil
}

func parseIDs(arguments []string) ([]int, error) {
	var ids []int
	for _, a := range arguments {
		id, err := strconv.ParseUint(a, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("reading the number of a user or group: %w", err)
		}
		ids = append(ids, int(id))
	}
	if len(ids) < 2 {
		return nil, errors.New("a user and a group are missing")
	}
	return ids, nil
}

// sendFUSE mounts a file system that only a user can look into, not even root, and sends the mount. It returns the file by which the file
// system asks.
func sendFUSE(uid, gid int) (int, error) {
	device, err := unix.Open("/dev/fuse", unix.O_RDWR, 0)
	if err != nil {
		return -1, fmt.Errorf("opening /dev/fuse: %w", err)
	}
	fs, err := unix.Fsopen("fuse", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("mounting a FUSE file system: %w", err)
	}
	for _, o := range [][2]string{
		{"source", "squashfuse"}, {"fd", strconv.Itoa(device)}, {"rootmode", "40000"}, {"user_id", strconv.Itoa(uid)}, {"group_id", strconv.Itoa(gid)},
	} {
		err = errors.Join(err, unix.FsconfigSetString(fs, o[0], o[1]))
	}
	err = errors.Join(err, unix.FsconfigSetFlag(fs, "default_permissions"), unix.FsconfigSetFlag(fs, "ro"))
	if err == nil {
		err = unix.FsconfigCreate(fs)
	}
	if err != nil {
		return -1, fmt.Errorf("mounting a FUSE file system: %w", err)
	}
	mount, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
	if err != nil {
		return -1, fmt.Errorf("mounting a FUSE file system: %w", err)
	}
	if err := unix.Sendmsg(replyFD, []byte{0}, unix.UnixRights(mount), nil, 0); err != nil {
		return -1, fmt.Errorf("sending a mount: %w", err)
	}
	return device, errors.Join(unix.Close(mount), unix.Close(fs), unix.Close(replyFD))
}

// hideNode leaves of the node's files nothing but programs and libraries, which nobody can write, and of its processes none, or none of
// which it could do anything with: they are of another user namespace.
func hideNode() error {
	const root = "/tmp"
	err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
	if err == nil {
		err = unix.Mount("tmpfs", root, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755")
	}
	if err == nil {
		err = errors.Join(os.Mkdir(root+"/proc", 0o755), show("/usr", root+"/usr")) //nolint:gosec // for the user
	}
	// What squashfuse needs besides /usr, where that is no part of it.
	for _, name := range []string{"lib", "lib64"} {
		err = errors.Join(err, showLibrary(name, root))
	}
	if err == nil {
		err = unix.Mount("proc", root+"/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
		if errors.Is(err, unix.EPERM) {
			// Something covers a part of /proc of this container, which a new one would show.
			err = unix.Mount("/proc", root+"/proc", "", unix.MS_BIND|unix.MS_REC, "")
		}
	}
	if err == nil {
		err = unix.MountSetattr(unix.AT_FDCWD, root, 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
	}
	if err == nil {
		err = os.Chdir(root)
	}
	if err == nil {
		// The old root lies on the new one then (pivot_root(2)).
		err = unix.PivotRoot(".", ".")
	}
	if err == nil {
		err = errors.Join(unix.Unmount(".", unix.MNT_DETACH), os.Chdir("/"))
	}
	if err != nil {
		return fmt.Errorf("hiding the node from squashfuse: %w", err)
	}
	return nil
}

func showLibrary(name, root string) error {
	link, err := os.Readlink("/" + name)
	switch {
	case err == nil:
		return os.Symlink(link, filepath.Join(root, name))
	case errors.Is(err, os.ErrNotExist):
		return nil
	}
	return show("/"+name, filepath.Join(root, name))
}

// show mounts a directory at a new place, where nobody can write.
func show(source, target string) error {
	if err := os.Mkdir(target, 0o755); err != nil { //nolint:gosec // for the user
		return err
	}
	const flags = unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	err := unix.Mount(source, target, "", unix.MS_BIND|unix.MS_REC, "")
	if err == nil {
		err = unix.MountSetattr(unix.AT_FDCWD, target, unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: flags})
	}
	if err != nil {
		return fmt.Errorf("showing %s: %w", source, err)
	}
	return nil
}

// become gives up all rights but those of a user, for this process and all programs that it becomes.
func become(uid, gid int, groups []int) error {
	// With these bits the user root has no rights from its number.
	const noRoot, noRootLocked = 1, 2 // linux/securebits.h
	err := unix.Prctl(unix.PR_SET_SECUREBITS, noRoot|noRootLocked, 0, 0, 0)
	err = errors.Join(err, unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), unix.Setgroups(groups), unix.Setresgid(gid, gid, gid))
	if err == nil {
		err = unix.Setresuid(uid, uid, uid)
	}
	limits := []struct {
		resource int
		most     uint64
	}{{unix.RLIMIT_DATA, maxDataBytes}, {unix.RLIMIT_NOFILE, maxFiles}, {unix.RLIMIT_NPROC, maxThreads}, {unix.RLIMIT_CORE, 0}}
	for _, l := range limits {
		err = errors.Join(err, unix.Setrlimit(l.resource, &unix.Rlimit{Cur: l.most, Max: l.most}))
	}
	if err != nil {
		return fmt.Errorf("giving up the rights of root: %w", err)
	}
	return nil
}

// arguments are those of Confined.
func arguments(owner Owner, groups []uint32) []string {
	return strings.Fields(strings.Trim(fmt.Sprint(append([]uint32{owner.UID, owner.GID}, groups...)), "[]"))
}
