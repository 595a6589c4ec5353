// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/coxswain-hpc/coxswain/internal/node/jail"
)

// Assembler carries a plan out.
type Assembler struct {
	Jail *jail.Root
	// Run is Input.Run. It is the pod's, so that directories and files may be made in it.
	Run string
}

// Assemble makes what is in Run and the mounts of a plan. It ends at the first that cannot be made.
func (a *Assembler) Assemble(steps []Step) error {
	for _, dir := range []string{"slurm", "coxswain/slurm", "lock", "user", "sshd"} {
		mode := fs.FileMode(0o755)
		if dir == "lock" {
			mode = 0o1777 | fs.ModeSticky
		}
		if err := os.MkdirAll(filepath.Join(a.Run, dir), 0o755); err != nil { //nolint:gosec // as /run is everywhere
			return fmt.Errorf("making /run of the jail: %w", err)
		}
		if err := os.Chmod(filepath.Join(a.Run, dir), mode); err != nil {
			return fmt.Errorf("making /run of the jail: %w", err)
		}
	}
	for from, to := range map[string]string{
		// Where Slurm's commands look for the pod's name service.
		"/etc/passwd": "passwd", "/etc/group": "group", "/etc/nsswitch.conf": "nsswitch.conf",
		// Where a link of the jail leads ssh. A file of a jail that we did not fill is mounted over instead.
		KnownHosts: "coxswain/ssh_known_hosts",
	} {
		if err := copyTo(from, filepath.Join(a.Run, to)); err != nil {
			return fmt.Errorf("giving the jail %s of the pod: %w", from, err)
		}
	}
	for _, step := range steps {
		if err := a.mount(step); err != nil {
			return err
		}
	}
	return nil
}

// copyTo copies a file of the pod that everybody may read, if there is one.
func copyTo(from, to string) error {
	data, err := os.ReadFile(from) //nolint:gosec // one of four names
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o644) //nolint:gosec // as the file that it is a copy of
}

func (a *Assembler) mount(step Step) error {
	if step.OverFile && !a.isFile(step.Target) {
		return nil
	}
	if _, err := os.Stat(step.Source); step.Source != "" && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	target, err := a.target(step)
	if errors.Is(err, fs.ErrNotExist) {
		if step.Optional {
			return nil
		}
		return fmt.Errorf("the jail has no %s, on which the pod mounts its own: populate the jail, or make %s there: %w",
			step.Target, what(step.Source), err)
	}
	if err != nil {
		return err
	}
	defer func() { _ = target.Close() }()
	return bind(step, target)
}

// what returns whether a mount point has to be a file or a directory.
func what(source string) string {
	if info, err := os.Stat(source); err == nil && !info.IsDir() {
		return "an empty file"
	}
	return "an empty directory"
}

// isFile reports whether the jail has a regular file at path. A symbolic link is not one: it leads to SlurmDir already.
func (a *Assembler) isFile(path string) bool {
	if _, err := a.Jail.Link(path); err == nil {
		return false
	}
	file, err := a.Jail.Path(path)
	if err != nil {
		return false
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	return err == nil && info.Mode().IsRegular()
}

// target opens the mount point. One that a symbolic link has below /run is made there, which is the pod's: that is how
// distributions have their resolv.conf.
func (a *Assembler) target(step Step) (*os.File, error) {
	target, err := a.Jail.Path(step.Target)
	if !errors.Is(err, fs.ErrNotExist) {
		return target, err
	}
	if inPod(step.Target) {
		if err := a.makeInPod(step); err != nil {
			return nil, err
		}
		return a.Jail.Path(step.Target)
	}
	link, linkErr := a.Jail.Link(step.Target)
	if linkErr != nil {
		return nil, err
	}
	if !path.IsAbs(link) {
		link = path.Join(path.Dir(step.Target), link)
	}
	below, ok := strings.CutPrefix(path.Clean(link), "/run/")
	if !ok {
		return nil, err
	}
	file := filepath.Join(a.Run, below)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil { //nolint:gosec // as /run is everywhere
		return nil, fmt.Errorf("making /run of the jail: %w", err)
	}
	if err := os.WriteFile(file, nil, 0o644); err != nil { //nolint:gosec // a mount point that everybody may read
		return nil, fmt.Errorf("making /run of the jail: %w", err)
	}
	return a.Jail.Path(step.Target)
}

// bind mounts on the descriptor, whatever happens to its path meanwhile.
func bind(step Step, target *os.File) error {
	at := "/proc/self/fd/" + strconv.Itoa(int(target.Fd()))
	if step.Source == "" {
		if err := unix.Mount("proc", at, "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
			return fmt.Errorf("mounting a new proc at %s of the jail: %w", step.Target, err)
		}
		return nil
	}
	return attach(step, target)
}

// inPod reports whether a path of the view is below what is the pod's by then, where mount points may be made.
func inPod(target string) bool {
	return strings.HasPrefix(target, "/tmp/") || strings.HasPrefix(target, "/run/")
}

// makeInPod makes a mount point and the directories above it. None of them may be a link, which could lead into the jail.
func (a *Assembler) makeInPod(step Step) error {
	root := a.Jail.WithoutLinks()
	parts := strings.Split(strings.Trim(step.Target, "/"), "/")
	for i := 1; i < len(parts); i++ {
		if err := root.Mkdir("/"+path.Join(parts[:i]...), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	if info, err := os.Stat(step.Source); err == nil && !info.IsDir() {
		file, err := root.Create(step.Target, 0o644)
		if err != nil {
			return err
		}
		return file.Close()
	}
	return root.Mkdir(step.Target, 0o755)
}

// attach clones the source's mount and moves the clone onto the target: what is read-only is so before anybody sees it.
func attach(step Step, target *os.File) error {
	flags := uint(unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC)
	if step.Recursive {
		flags |= unix.AT_RECURSIVE
	}
	tree, err := unix.OpenTree(unix.AT_FDCWD, step.Source, flags)
	if err != nil {
		return fmt.Errorf("taking %s for the jail: %w", step.Source, err)
	}
	defer func() { _ = unix.Close(tree) }()
	if step.ReadOnly {
		attributes := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
		if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH, &attributes); err != nil {
			return fmt.Errorf("making %s read-only for the jail: %w", step.Source, err)
		}
	}
	if !sameKind(step.Source, target) {
		return fmt.Errorf("%s of the jail is not %s, on which the pod could mount its own", step.Target, what(step.Source))
	}
	err = unix.MoveMount(tree, "", int(target.Fd()), "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
	if err != nil {
		return fmt.Errorf("mounting %s at %s of the jail: %w", step.Source, step.Target, err)
	}
	return nil
}

// sameKind reports whether source and target are both directories or both not.
func sameKind(source string, target *os.File) bool {
	from, fromErr := os.Stat(source)
	to, toErr := target.Stat()
	return fromErr == nil && toErr == nil && from.IsDir() == to.IsDir()
}
