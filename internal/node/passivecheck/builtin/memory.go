// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/coxswain-hpc/coxswain/internal/node/passivecheck"
	"github.com/coxswain-hpc/coxswain/internal/node/passivecheck/machine"
)

// maxDiskUsed is how full the boot disk may be, in percent.
const maxDiskUsed = 80

// bootDiskFull fails when the file system of the container's root is too full, as df(1) counts.
func bootDiskFull(_ context.Context, m *machine.Machine) (passivecheck.Result, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(m.Root, &st); err != nil {
		return passivecheck.Result{}, fmt.Errorf("asking how full the boot disk is: %w", err)
	}
	percent := percentUsed(st.Blocks, st.Bfree, st.Bavail)
	if percent > maxDiskUsed {
		return failed("%d%% of the boot disk are used, more than %d%%", percent, maxDiskUsed)
	}
	return passed("%d%% of the boot disk are used", percent)
}

// percentUsed leaves out what is reserved for root, and rounds up.
func percentUsed(blocks, free, available uint64) uint64 {
	used := blocks - min(free, blocks)
	if used+available == 0 {
		return 0
	}
	return (used*100 + used + available - 1) / (used + available)
}

// allocMemoryUsed has two uses. With a job it fails when less memory is available than the job may use. Without one it fails when less
// is available than all jobs of the node together may use.
func allocMemoryUsed(ctx context.Context, m *machine.Machine) (passivecheck.Result, error) {
	memory, err := readMemory(m)
	if err != nil {
		return passivecheck.Result{}, err
	}
	if m.Job == nil {
		return memoryOfNode(ctx, m, memory)
	}
	wanted, err := m.JobMemory(ctx)
	if err != nil {
		return passivecheck.Result{}, err
	}
	return compareMemory(memory, wanted, "allocated to the job")
}

// idleMemoryUsed returns the same for a node without jobs: something else uses the memory then.
func idleMemoryUsed(ctx context.Context, m *machine.Machine) (passivecheck.Result, error) {
	if m.Job != nil || len(m.StepJobs()) > 0 {
		return skipped("the node has jobs")
	}
	memory, err := readMemory(m)
	if err != nil {
		return passivecheck.Result{}, err
	}
	node, err := m.Node(ctx)
	if err != nil {
		return passivecheck.Result{}, err
	}
	if node.Busy() {
		return skipped("the node has jobs")
	}
	return memoryOfNode(ctx, m, memory)
}

// maxShare is which part of the machine's memory can ever be available, in percent: the kernel has some for itself.
const maxShare = 97

func memoryOfNode(ctx context.Context, m *machine.Machine, memory memoryInfo) (passivecheck.Result, error) {
	node, err := m.Node(ctx)
	if err != nil {
		return passivecheck.Result{}, err
	}
	usable := (node.RealMemory - node.SpecMemory) * passivecheck.Mebibyte
	if usable <= 0 || usable > memory.total/100*maxShare {
		return skipped("Slurm counts all memory of the machine as the node's, which is never all available; limit the memory of the worker's pod")
	}
	return compareMemory(memory, usable, "of the node")
}

func compareMemory(memory memoryInfo, wanted int64, whose string) (passivecheck.Result, error) {
	if memory.available < wanted {
		return failed("%d MiB of memory are available, less than the %d MiB %s", memory.available/passivecheck.Mebibyte, wanted/passivecheck.Mebibyte, whose)
	}
	return passed("%d MiB of memory are available, %d MiB are %s", memory.available/passivecheck.Mebibyte, wanted/passivecheck.Mebibyte, whose)
}

// memoryInfo is what /proc/meminfo has, in bytes.
type memoryInfo struct{ total, available int64 }

func readMemory(m *machine.Machine) (memoryInfo, error) {
	content, err := os.ReadFile(m.Path("/proc/meminfo"))
	if err != nil {
		return memoryInfo{}, fmt.Errorf("asking how much memory is available: %w", err)
	}
	return parseMemory(string(content))
}

func parseMemory(text string) (memoryInfo, error) {
	var out memoryInfo
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(line, ":")
		to := map[string]*int64{"MemTotal": &out.total, "MemAvailable": &out.available}[key]
		fields := strings.Fields(value)
		if to == nil || len(fields) == 0 {
			continue
		}
		kibibytes, err := strconv.ParseInt(fields[0], 10, 54)
		if err != nil || kibibytes < 0 {
			return memoryInfo{}, fmt.Errorf("reading /proc/meminfo: %s is %q", key, fields[0])
		}
		*to = kibibytes << 10
	}
	if out.total == 0 {
		return memoryInfo{}, errors.New("reading /proc/meminfo: it has no MemTotal")
	}
	return out, nil
}

// dropPageCache writes dirty pages and drops the page cache of the machine, so that the next job finds memory free.
func dropPageCache(_ context.Context, m *machine.Machine) (passivecheck.Result, error) {
	file, err := os.OpenFile(m.Path("/proc/sys/vm/drop_caches"), os.O_WRONLY, 0)
	if forbidden(err) {
		return passivecheck.Result{State: passivecheck.Unavailable, Details: "the pod may not drop the page cache of the machine, as with hostUsers: false"}, nil
	}
	if err != nil {
		return passivecheck.Result{}, fmt.Errorf("dropping the page cache: %w", err)
	}
	unix.Sync()
	_, err = file.WriteString("3\n")
	if err := errors.Join(err, file.Close()); err != nil {
		return passivecheck.Result{}, fmt.Errorf("dropping the page cache: %w", err)
	}
	return passed("the page cache was dropped")
}

// forbidden reports whether the kernel keeps something from the pod for good.
func forbidden(err error) bool { return errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EROFS) }

// dropPOSIXSharedMemory removes what jobs have left in /dev/shm of the jail.
func dropPOSIXSharedMemory(_ context.Context, m *machine.Machine) (passivecheck.Result, error) {
	count, err := removeIn(m, "/dev/shm", func(string) bool { return true })
	if err != nil {
		return passivecheck.Result{}, fmt.Errorf("emptying /dev/shm: %w", err)
	}
	return passed("%d entries of /dev/shm were removed", count)
}
