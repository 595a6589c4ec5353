// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rootfs makes the root file system of a container in a mount namespace of its own: an overlay over an image that is mounted, and
// what of the node is to be seen in it. The process that calls it has all capabilities in a user namespace, which owns the mount
// namespace, and none beyond.
//
// Nothing follows a link out of the container: targets are resolved inside of it (openat2(2), RESOLVE_IN_ROOT).
package rootfs

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// staging is where a root is put together. Nothing of the node is looked up below it afterwards.
const staging = "/tmp"

// Root is a root file system that is being made.
type Root struct {
	dir string
	top *os.File
}

// Layers are what a root is made of.
type Layers struct {
	// Image is a mount of the image's files (open_tree(2), fsmount(2)), which is nowhere yet.
	Image *os.File
	// Upper is a mount of a directory with the directories upper and work, for files that are written. Without one they are in memory.
	Upper *os.File
}

// New puts layers together.
func New(l Layers) (*Root, error) {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return nil, fmt.Errorf("cutting off the node's mounts: %w", err)
	}
	if err := unix.Mount("tmpfs", staging, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755"); err != nil {
		return nil, fmt.Errorf("making a place for the container: %w", err)
	}
	for _, name := range []string{"image", "files", "root"} {
		if err := os.Mkdir(filepath.Join(staging, name), 0o755); err != nil { //nolint:gosec // of the container
			return nil, fmt.Errorf("making a place for the container: %w", err)
		}
	}
	if err := attach(l.Image, unix.AT_FDCWD, filepath.Join(staging, "image"), 0); err != nil {
		return nil, fmt.Errorf("mounting the image: %w", err)
	}
	files := filepath.Join(staging, "files")
	if l.Upper != nil {
		if err := attach(l.Upper, unix.AT_FDCWD, files, 0); err != nil {
			return nil, fmt.Errorf("mounting the container's own files: %w", err)
		}
	}
	for _, name := range []string{"upper", "work"} {
		if err := os.Mkdir(filepath.Join(files, name), 0o755); err != nil && !errors.Is(err, os.ErrExist) { //nolint:gosec // of the container
			return nil, fmt.Errorf("making a place for the container's own files: %w", err)
		}
	}
	dir := filepath.Join(staging, "root")
	options := fmt.Sprintf("lowerdir=%s/image,upperdir=%s/upper,workdir=%s/work,userxattr,xino=off", staging, files, files)
	if err := unix.Mount("overlay", dir, "overlay", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		return nil, fmt.Errorf("laying the container's own files over the image: %w", err)
	}
	top, err := os.OpenFile(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0) //nolint:gosec // a directory of ours
	if err != nil {
		return nil, fmt.Errorf("opening the container's root: %w", err)
	}
	return &Root{dir: dir, top: top}, nil
}

func attach(mount *os.File, at int, target string, flags int) error {
	return unix.MoveMount(int(mount.Fd()), "", at, target, unix.MOVE_MOUNT_F_EMPTY_PATH|flags)
}

// Tree returns what is at a path of the node, with all that is mounted below it if it is recursive, as a mount that is nowhere yet.
func Tree(source string, recursive bool) (*os.File, error) {
	flags := uint(unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC)
	if recursive {
		flags |= unix.AT_RECURSIVE
	}
	fd, err := unix.OpenTree(unix.AT_FDCWD, source, flags)
	if err != nil {
		return nil, &os.PathError{Op: "open_tree", Path: source, Err: err}
	}
	return os.NewFile(uintptr(fd), source), nil
}

// Tmpfs returns an empty file system in memory, with options such as size=1G, as a mount that is nowhere yet. Flags have no value.
func Tmpfs(options map[string]string) (*os.File, error) {
	fs, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("making a tmpfs: %w", err)
	}
	defer func() { _ = unix.Close(fs) }()
	for key, value := range options {
		err := unix.FsconfigSetFlag(fs, key)
		if value != "" {
			err = unix.FsconfigSetString(fs, key, value)
		}
		if err != nil {
			return nil, fmt.Errorf("making a tmpfs with %s=%s: %w", key, value, err)
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return nil, fmt.Errorf("making a tmpfs: %w", err)
	}
	fd, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
	if err != nil {
		return nil, fmt.Errorf("making a tmpfs: %w", err)
	}
	return os.NewFile(uintptr(fd), "tmpfs"), nil
}

// Attributes are flags of a mount: MOUNT_ATTR_RDONLY and so on, and a propagation: MS_PRIVATE and so on.
type Attributes struct {
	Set, Clear  uint64
	Propagation uint64
	Recursive   bool
}

// IsZero reports whether there is nothing to set.
func (a Attributes) IsZero() bool { return a.Set == 0 && a.Clear == 0 && a.Propagation == 0 }

// Apply sets attributes of a mount.
func (a Attributes) Apply(mount *os.File) error {
	if a.IsZero() {
		return nil
	}
	flags := uint(unix.AT_EMPTY_PATH)
	if a.Recursive {
		flags |= unix.AT_RECURSIVE
	}
	attr := unix.MountAttr{Attr_set: a.Set, Attr_clr: a.Clear, Propagation: a.Propagation}
	if err := unix.MountSetattr(int(mount.Fd()), "", flags, &attr); err != nil {
		return fmt.Errorf("setting the flags of a mount: %w", err)
	}
	return nil
}

// Mount shows a mount at a path in the container. The path is made if it is not there and create says so: a directory or an empty file, as
// the mount is one.
func (r *Root) Mount(mount *os.File, target string, create bool) error {
	place, err := r.place(mount, target, create)
	if err != nil {
		return err
	}
	defer func() { _ = place.Close() }()
	if err := attach(mount, int(place.Fd()), "", unix.MOVE_MOUNT_T_EMPTY_PATH); err != nil {
		return fmt.Errorf("mounting at %s: %w", target, err)
	}
	return nil
}

// place opens the target of a mount, and makes it if it is not there.
func (r *Root) place(mount *os.File, target string, create bool) (*os.File, error) {
	if isOutside(target) {
		return nil, fmt.Errorf("mounting at %s: %w", target, unix.EXDEV)
	}
	place, err := r.open(target, unix.O_PATH)
	if err == nil || !create || !errors.Is(err, os.ErrNotExist) {
		return place, err
	}
	var status unix.Stat_t
	if err := unix.Fstat(int(mount.Fd()), &status); err != nil {
		return nil, fmt.Errorf("looking at what is mounted at %s: %w", target, err)
	}
	if status.Mode&unix.S_IFMT == unix.S_IFDIR {
		return r.Directory(target)
	}
	parent, err := r.Directory(path.Dir(target))
	if err != nil {
		return nil, err
	}
	defer func() { _ = parent.Close() }()
	file, err := openIn(parent, path.Base(target), unix.O_CREAT|unix.O_WRONLY|unix.O_NOFOLLOW, 0o644)
	if err != nil {
		return nil, fmt.Errorf("making %s: %w", target, err)
	}
	_ = file.Close()
	return r.open(target, unix.O_PATH)
}

// isOutside reports whether a path leaves the root by its own text.
func isOutside(target string) bool {
	depth := 0
	for part := range strings.SplitSeq(target, "/") {
		switch part {
		case "", ".":
		case "..":
			depth--
		default:
			depth++
		}
		if depth < 0 {
			return true
		}
	}
	return false
}

// maxLinks bounds links that lead nowhere yet, as the kernel bounds links (path_resolution(7)).
const maxLinks = 40

// Directory opens a directory of the container, and makes it and those above it if they are not there; also where a link leads.
func (r *Root) Directory(name string) (*os.File, error) {
	for range maxLinks {
		dir, next, err := r.makeDirectory(path.Clean("/" + name))
		if dir != nil || err != nil {
			return dir, err
		}
		name = next
	}
	return nil, &os.PathError{Op: "mkdir", Path: name, Err: unix.ELOOP}
}

// makeDirectory is Directory for a path that may have a link to what is not there. It returns the path to try instead then.
func (r *Root) makeDirectory(name string) (dir *os.File, instead string, err error) {
	at, err := r.open(".", unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return nil, "", err
	}
	defer func() {
		if dir == nil {
			_ = at.Close()
		}
	}()
	parts := strings.Split(strings.Trim(name, "/"), "/")
	for i, part := range parts {
		if part == "" {
			continue
		}
		if err := unix.Mkdirat(int(at.Fd()), part, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return nil, "", fmt.Errorf("making %s: %w", name, err)
		}
		done := "/" + path.Join(parts[:i+1]...)
		next, err := r.open(done, unix.O_PATH|unix.O_DIRECTORY)
		if errors.Is(err, os.ErrNotExist) {
			link, failed := readLink(at, part)
			if !path.IsAbs(link) {
				link = path.Join(path.Dir(done), link)
			}
			return nil, path.Join(append([]string{link}, parts[i+1:]...)...), failed
		}
		if err != nil {
			return nil, "", err
		}
		_ = at.Close()
		at = next
	}
	return at, "", nil
}

func readLink(dir *os.File, name string) (string, error) {
	buffer := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(int(dir.Fd()), name, buffer)
	if err != nil {
		return "", &os.PathError{Op: "readlink", Path: name, Err: err}
	}
	return string(buffer[:n]), nil
}

// open opens a file of the container, by a path that may have links.
func (r *Root) open(name string, flags uint64) (*os.File, error) {
	return openIn(r.top, name, flags, 0)
}

func openIn(dir *os.File, name string, flags, mode uint64) (*os.File, error) {
	how := unix.OpenHow{Flags: flags | unix.O_CLOEXEC, Mode: mode, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS}
	for {
		fd, err := unix.Openat2(int(dir.Fd()), name, &how)
		switch {
		case errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR): // a rename elsewhere
			continue
		case err != nil:
			return nil, &os.PathError{Op: "open", Path: name, Err: err}
		}
		return os.NewFile(uintptr(fd), name), nil
	}
}

// ReadFile returns a file of the container.
func (r *Root) ReadFile(name string) ([]byte, error) {
	f, err := r.open(name, unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return readBounded(f)
}

// WriteFile replaces a file of the container.
func (r *Root) WriteFile(name string, content []byte) error {
	parent, err := r.Directory(path.Dir(name))
	if err != nil {
		return err
	}
	defer func() { _ = parent.Close() }()
	f, err := openIn(parent, path.Base(name), unix.O_CREAT|unix.O_TRUNC|unix.O_WRONLY|unix.O_NONBLOCK, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Close())
}

// Detach takes away what is mounted at a path of the container.
func (r *Root) Detach(target string) error {
	place, err := r.open(target, unix.O_PATH)
	if err != nil {
		return err
	}
	defer func() { _ = place.Close() }()
	if err := unix.Unmount(fmt.Sprintf("/proc/self/fd/%d", place.Fd()), unix.MNT_DETACH); err != nil {
		return fmt.Errorf("unmounting %s: %w", target, err)
	}
	return nil
}

// ReadOnly lets nobody write files of the root itself. Mounts stay as they are.
func (r *Root) ReadOnly() error {
	return Attributes{Set: unix.MOUNT_ATTR_RDONLY}.Apply(r.top)
}

// Enter makes it the root of this process, and of all in its mount namespace. The node's files are gone then.
func (r *Root) Enter() error {
	if err := unix.Fchdir(int(r.top.Fd())); err != nil {
		return fmt.Errorf("entering the container: %w", err)
	}
	// Old and new root on one place: the old one is then on top, and "." is it (pivot_root(2)).
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("making the container the root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leaving the node's files: %w", err)
	}
	if err := os.Chdir("/"); err != nil {
		return fmt.Errorf("entering the container: %w", err)
	}
	return nil
}
