// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// rootVariable is the environment variable with the path under which the program of "jail sessions" finds the root of the jail.
const rootVariable = "COXSWAIN_JAIL_ROOT"

// runSessions runs a program, sshd, in the container's root file system, but in a mount namespace whose root is the jail. A session that
// the program moves to the path in rootVariable has the root of its namespace, as a job has: the kernel lets it make user namespaces,
// which it lets no process do that was moved below that root (user_namespaces(7), CLONE_NEWUSER, EPERM).
//
// A process beside it has the jail as its root for as long as the program runs. None of these has a capability then. This process must not
// be the first one of a container, whose namespaces those join who run commands there.
func runSessions(ctx context.Context, args []string, output io.Writer) error {
	var program []string
	if i := slices.Index(args, "--"); i >= 0 {
		args, program = args[:i], args[i+1:]
	}
	var root string
	var stay bool
	err := parse("sessions", args, output, func(f *flag.FlagSet) {
		f.StringVar(&root, "root", "/mnt/jail", "`directory` at which the jail is mounted; the program and its arguments come behind --")
		f.BoolVar(&stay, "stay", false, "be the process that has the jail as its root")
	})
	switch {
	case err != nil:
		return err
	case stay:
		if err := giveUpCapabilities(); err != nil {
			return err
		}
		<-ctx.Done()
		return nil
	case len(program) == 0:
		return errors.New("no program is given: jail sessions [flags] -- PROGRAM [ARGUMENT...]")
	}
	path, err := exec.LookPath(program[0])
	if err != nil {
		return fmt.Errorf("finding the program: %w", err)
	}
	runtime.LockOSThread() // mount namespace and root are those of a thread
	link, staying, err := startInJail(root)
	if err != nil {
		return err
	}
	if staying == 0 {
		link = root
		fmt.Fprintln(output, "jail: sessions cannot make user namespaces, because this machine does not allow any")
	}
	pid, err := syscall.ForkExec(path, program, &syscall.ProcAttr{ //nolint:gosec // it is what this command is for
		Env: append(os.Environ(), rootVariable+"="+link), Files: []uintptr{0, 1, 2},
	})
	if err != nil {
		return fmt.Errorf("starting %s: %w", path, err)
	}
	if err := giveUpCapabilities(); err != nil {
		return errors.Join(err, unix.Kill(pid, unix.SIGKILL))
	}
	return await(pid, staying)
}

// startInJail moves this thread into a mount namespace whose root is the jail, starts a process there that stays, and returns to the
// container's root file system, by a directory that was open before. link leads to the root of the namespace. staying is 0 where no
// process can have a user namespace.
//
// That process has a user namespace of its own, made by root, and so root may follow the link, whatever its group and its capabilities are:
// sshd has taken the user's group when it does (ptrace(2), PTRACE_MODE_READ_FSCREDS).
func startInJail(root string) (link string, staying int, err error) {
	container, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", 0, fmt.Errorf("opening /: %w", err)
	}
	defer func() { err = errors.Join(err, unix.Close(container)) }()
	if err := enterJail(root); err != nil {
		return "", 0, err
	}
	rootAlone := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 1}}                                    // without it the process could not give up anything
	staying, err = syscall.ForkExec("/proc/self/exe", []string{"jail", "sessions", "--stay"}, &syscall.ProcAttr{ //nolint:gosec // this program
		Env: os.Environ(), Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{
			Cloneflags: syscall.CLONE_NEWUSER, UidMappings: rootAlone, GidMappings: rootAlone, Pdeathsig: syscall.SIGKILL,
		},
	})
	if err != nil && !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.ENOSPC) {
		return "", 0, fmt.Errorf("starting the process that stays in %s: %w", root, err)
	}
	if err := unix.Fchdir(container); err != nil {
		return "", 0, fmt.Errorf("entering the container's root: %w", err)
	}
	if err := unix.Chroot("."); err != nil {
		return "", 0, fmt.Errorf("changing the root: %w", err)
	}
	return fmt.Sprintf("/proc/%d/root", staying), staying, nil
}

// enterJail gives this thread a mount namespace in which the jail, with what is mounted below it, is the root and all that there is. What is
// mounted in the container later arrives there.
func enterJail(root string) error {
	for _, step := range []struct {
		doing string
		do    func() error
	}{
		{"making a mount namespace", func() error { return unix.Unshare(unix.CLONE_NEWNS) }},
		{"cutting off its mounts", func() error { return unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, "") }},
		{"binding " + root, func() error { return unix.Mount(root, root, "", unix.MS_BIND|unix.MS_REC, "") }},
		{"entering " + root, func() error { return unix.Chdir(root) }},
		// Old and new root at one place: the old one is then on top, and "." is it, see pivot_root(2).
		{"making a root of " + root, func() error { return unix.PivotRoot(".", ".") }},
		{"detaching the container's root", func() error { return unix.Unmount(".", unix.MNT_DETACH) }},
		{"entering / of " + root, func() error { return unix.Chdir("/") }},
	} {
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %w", step.doing, err)
		}
	}
	return nil
}

// await waits for the end of the program. The error is how it ended, nil for status 0. Without the process that stays, if there is
// one, nobody could log in any more, so the program ends with it. Others that are children of this one may end before.
func await(program, staying int) error {
	for {
		var status unix.WaitStatus
		ended, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return fmt.Errorf("waiting for process %d: %w", program, err)
		case ended == staying:
			return errors.Join(errors.New("the process that stays in the jail has ended"), unix.Kill(program, unix.SIGKILL))
		case ended != program:
		case status.Signaled():
			return fmt.Errorf("the program was ended by signal %d", status.Signal())
		case status.ExitStatus() != 0:
			return fmt.Errorf("the program ended with status %d", status.ExitStatus())
		default:
			return nil
		}
	}
}

// giveUpCapabilities takes all capabilities from all threads of this process, and what they could get them back by.
func giveUpCapabilities() error {
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		// A kernel that does not know it has none to give.
		if _, _, errno := syscall.AllThreadsSyscall6(unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, c, 0, 0, 0, 0); errno != 0 && errno != unix.EINVAL {
			return fmt.Errorf("giving up capability %d: %w", c, errno)
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	//nolint:gosec // capset(2) of one thread is in x/sys, that of all threads is not
	if _, _, errno := syscall.AllThreadsSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&none)), 0); errno != 0 {
		return fmt.Errorf("giving up all capabilities: %w", errno)
	}
	return nil
}
