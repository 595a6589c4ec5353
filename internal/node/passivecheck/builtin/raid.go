// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/coxswain-hpc/coxswain/internal/node/jail"
	"github.com/coxswain-hpc/coxswain/internal/node/passivecheck"
	"github.com/coxswain-hpc/coxswain/internal/node/passivecheck/machine"
)

// nvmeRAIDHealth fails when an md array over NVMe disks has lost a disk or does not run, when it is mounted read-only, or when nothing
// can be written to it.
func nvmeRAIDHealth(_ context.Context, m *machine.Machine) (passivecheck.Result, error) {
	content, err := os.ReadFile(m.Path("/proc/mdstat"))
	if errors.Is(err, fs.ErrNotExist) {
		return skipped("the kernel has no md arrays")
	}
	if err != nil {
		return passivecheck.Result{}, fmt.Errorf("reading the md arrays: %w", err)
	}
	arrays := parseArrays(string(content))
	if len(arrays) == 0 {
		return skipped("there are no md arrays over NVMe disks")
	}
	mounts, err := os.ReadFile(m.Path("/proc/mounts"))
	if err != nil {
		return passivecheck.Result{}, fmt.Errorf("reading the mounts: %w", err)
	}
	var found []string
	for _, array := range arrays {
		if array.problem != "" {
			found = append(found, array.name+" "+array.problem)
		}
		for _, mount := range mountsOf(string(mounts), "/dev/"+array.name) {
			problem, err := mountProblem(m, mount)
			if err != nil {
				return passivecheck.Result{}, err
			}
			if problem != "" {
				found = append(found, array.name+" "+problem)
			}
		}
	}
	if len(found) > 0 {
		return failed("%s", strings.Join(found, "; "))
	}
	return passed("%d md arrays over NVMe disks are complete", len(arrays))
}

// array is an md array over NVMe disks.
type array struct{ name, problem string }

var (
	arrayLine = regexp.MustCompile(`^(md\S*) : (active|inactive)(.*)$`)
	// disksUp is [UU_]: one letter for each disk.
	disksUp = regexp.MustCompile(`\[([U_]+)\]`)
)

// parseArrays reads /proc/mdstat.
func parseArrays(text string) []array {
	var out []array
	ours := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if match := arrayLine.FindStringSubmatch(line); match != nil {
			if ours = strings.Contains(match[3], "nvme"); !ours {
				continue
			}
			found := array{name: match[1]}
			switch {
			case match[2] == "inactive":
				found.problem = "is inactive"
			case strings.Contains(match[3], "(F)"):
				found.problem = "has a failed disk"
			}
			out = append(out, found)
			continue
		}
		if match := disksUp.FindStringSubmatch(line); ours && match != nil && strings.Contains(match[1], "_") && out[len(out)-1].problem == "" {
			out[len(out)-1].problem = "has lost a disk: [" + match[1] + "]"
		}
	}
	return out
}

// mount is where a device is mounted.
type mount struct {
	dir      string
	readOnly bool
}

// mountsOf reads the mounts of a device from /proc/mounts, which writes blanks in paths as octal numbers.
func mountsOf(text, device string) []mount {
	var out []mount
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 4 || fields[0] != device {
			continue
		}
		dir := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(fields[1])
		out = append(out, mount{dir: dir, readOnly: slices.Contains(strings.Split(fields[3], ","), "ro")})
	}
	return out
}

// probe is the file that is written; it is gone again at once.
const probe = ".coxswain-check-runner-probe"

// mountProblem writes a file. Users may own the directory, so that no link is followed.
func mountProblem(m *machine.Machine, at mount) (string, error) {
	if at.readOnly {
		return "is mounted read-only at " + at.dir, nil
	}
	root, err := jail.Open(m.Root)
	if err != nil {
		return "", err
	}
	defer func() { _ = root.Close() }()
	strict, name := root.WithoutLinks(), path.Join(at.dir, probe)
	// One that a killed check has left.
	if err := strict.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Sprintf("cannot be written to at %s: %v", at.dir, cause(err)), nil
	}
	file, err := strict.Create(name, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return "", nil // another check writes just now
	}
	if err == nil {
		_, err = file.WriteString("probe")
		err = errors.Join(err, file.Sync(), file.Close(), strict.Remove(name))
	}
	if err != nil {
		return fmt.Sprintf("cannot be written to at %s: %v", at.dir, cause(err)), nil
	}
	return "", nil
}

// cause returns the innermost error, which is the kernel's.
func cause(err error) error {
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	return err
}
