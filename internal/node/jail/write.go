// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package jail

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"

	"golang.org/x/sys/unix"
)

// Lstat returns what is at a path; a symbolic link at its end is not followed.
func (r *Root) Lstat(name string) (fs.FileInfo, error) {
	file, err := r.open(name, unix.O_PATH|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return file.Stat()
}

// Create makes a file that is not there yet and opens it for writing.
func (r *Root) Create(name string, mode fs.FileMode) (*os.File, error) {
	return r.open(name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_NOCTTY, uint64(mode.Perm()))
}

// Append opens a file for writing at its end. It refuses anything but a plain file with one name: users who may write in the directory may
// have put a link, a FIFO or another name of some file there.
func (r *Root) Append(name string) (*os.File, error) {
	file, err := r.open(name, unix.O_WRONLY|unix.O_APPEND|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &st); err != nil {
		return nil, errors.Join(fmt.Errorf("looking at %s of the jail: %w", name, err), file.Close())
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || st.Nlink != 1 || int(st.Uid) != os.Geteuid() {
		return nil, errors.Join(fmt.Errorf("opening %s of the jail: it is no file of ours with one name: %w", name, unix.EPERM), file.Close())
	}
	return file, nil
}

// Mkdir makes one directory. Its mode may have the sticky bit.
func (r *Root) Mkdir(name string, mode fs.FileMode) error {
	bits := uint32(mode.Perm())
	if mode&fs.ModeSticky != 0 {
		bits |= unix.S_ISVTX
	}
	return r.within(name, "making directory", func(dir int, base string) error { return unix.Mkdirat(dir, base, bits) })
}

// ChmodDirectory gives a directory these permissions, unless it has them.
func (r *Root) ChmodDirectory(name string, perm fs.FileMode) error {
	dir, err := r.open(name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	info, err := dir.Stat()
	if err == nil && info.Mode() != fs.ModeDir|perm {
		// A path descriptor cannot be changed itself.
		err = os.Chmod(fmt.Sprintf("/proc/self/fd/%d", dir.Fd()), perm)
	}
	if err != nil {
		return fmt.Errorf("changing the mode of %s of the jail: %w", name, err)
	}
	return nil
}

// Symlink makes a symbolic link that holds target, which is not looked at.
func (r *Root) Symlink(target, name string) error {
	return r.within(name, "making link", func(dir int, base string) error { return unix.Symlinkat(target, dir, base) })
}

// Chown gives what is at a path another owner; a symbolic link is not followed.
func (r *Root) Chown(name string, uid, gid int) error {
	return r.within(name, "changing the owner of", func(dir int, base string) error {
		return unix.Fchownat(dir, base, uid, gid, unix.AT_SYMLINK_NOFOLLOW)
	})
}

// Remove removes a file or a symbolic link, which is not followed.
func (r *Root) Remove(name string) error {
	return r.within(name, "removing", func(dir int, base string) error { return unix.Unlinkat(dir, base, 0) })
}

// RemoveAll removes a file, or a directory with all that is in it. Symbolic links are removed and not followed, whoever changes
// the tree meanwhile. Nothing at the path is no error.
func (r *Root) RemoveAll(name string) error {
	return r.within(name, "removing", func(dir int, base string) error {
		// The directory is a path descriptor, which only /proc opens anew.
		parent, err := os.OpenRoot(fmt.Sprintf("/proc/self/fd/%d", dir))
		if err != nil {
			return err
		}
		return errors.Join(parent.RemoveAll(base), parent.Close())
	})
}

// AddName gives the file at one path a second name.
func (r *Root) AddName(from, to string) error {
	return r.between(from, to, "linking", func(a int, x string, b int, y string) error { return unix.Linkat(a, x, b, y, 0) })
}

// Rename moves a file, over another one if need be.
func (r *Root) Rename(from, to string) error { return r.rename(from, to, 0) }

// RenameNew moves a file to a path at which nothing is. errors.ErrUnsupported means that the file system cannot do this.
func (r *Root) RenameNew(from, to string) error { return r.rename(from, to, unix.RENAME_NOREPLACE) }

// Exchange has two files take each other's name, atomically. errors.ErrUnsupported means that the file system
// cannot do this.
func (r *Root) Exchange(a, b string) error { return r.rename(a, b, unix.RENAME_EXCHANGE) }

func (r *Root) rename(from, to string, flags uint) error {
	return r.between(from, to, "moving", func(a int, x string, b int, y string) error {
		if flags == 0 {
			return unix.Renameat(a, x, b, y)
		}
		err := unix.Renameat2(a, x, b, y, flags)
		if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.ENOSYS) {
			return fmt.Errorf("%w: %w", err, errors.ErrUnsupported)
		}
		return err
	})
}

// within calls do with the directory of a path and the last part of it.
func (r *Root) within(name, doing string, do func(dir int, base string) error) error {
	parent, base := path.Split(name)
	if base == "" || base == "." || base == ".." {
		return fmt.Errorf("%s %q of the jail: the path does not end in a name: %w", doing, name, unix.EINVAL)
	}
	dir, err := r.open("/"+parent, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return fmt.Errorf("%s %s of the jail: %w", doing, name, err)
	}
	defer func() { _ = dir.Close() }()
	if err := do(int(dir.Fd()), base); err != nil {
		return fmt.Errorf("%s %s of the jail: %w", doing, name, err)
	}
	return nil
}

// between is within for two paths.
func (r *Root) between(from, to, doing string, do func(a int, x string, b int, y string) error) error {
	return r.within(from, doing, func(a int, x string) error {
		return r.within(to, "to", func(b int, y string) error { return do(a, x, b, y) })
	})
}
