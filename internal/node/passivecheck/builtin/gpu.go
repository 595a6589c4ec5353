// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/coxswain-hpc/coxswain/internal/node/passivecheck"
	"github.com/coxswain-hpc/coxswain/internal/node/passivecheck/machine"
)

// allocGPUsBusy fails when processes compute on the GPUs of the job, or, without a job, on any GPU of the node.
func allocGPUsBusy(ctx context.Context, m *machine.Machine) (passivecheck.Result, error) {
	if m.Job != nil && len(m.Job.GPUs) == 0 {
		return skipped("the job has no GPUs")
	}
	if !m.HasNvidiaSMI() {
		return notInstalled("nvidia-smi")
	}
	args := []string{"--query-compute-apps=pid", "--format=csv,noheader"}
	if m.Job != nil {
		var ids []string
		for _, gpu := range m.Job.GPUs {
			ids = append(ids, strconv.Itoa(gpu))
		}
		args = append(args, "--id="+strings.Join(ids, ","))
	}
	text, err := m.NvidiaSMI(ctx, args...)
	if err != nil {
		return passivecheck.Result{}, err
	}
	if pids := strings.Fields(text); len(pids) > 0 {
		return failed("processes compute on GPUs: %s", strings.Join(pids[:min(len(pids), 10)], " "))
	}
	return passed("no processes compute on GPUs")
}

// healthChecker is the program's name.
const healthChecker = "health-checker"

// gpuHealth runs health-checker, which is the jail's, with the jail as its root directory.
func gpuHealth(ctx context.Context, m *machine.Machine) (passivecheck.Result, error) {
	program := healthProgram(m)
	if program == "" {
		return notInstalled(healthChecker)
	}
	platform, err := m.Platform(ctx)
	if err != nil {
		return passivecheck.Result{}, err
	}
	tests := "module,nvidia_smi,nvidia_smi_nvlink,nvidia_smi_topo,dmesg,ib_link"
	if m.Context == passivecheck.Epilog {
		tests += ",dcgmi_diag_r1"
	}
	output, err := makeHealthDir(m)
	if err != nil {
		return passivecheck.Result{}, fmt.Errorf("making a directory for the output of health-checker: %w", err)
	}
	command := exec.CommandContext(ctx, program, "run", "-e", "soperator", "-p", platform.Tag(), "-n", tests, "-f", "json-partial", //nolint:gosec // see healthProgram
		"--tests-stdout-path", output)
	command.Dir = "/"
	if root := m.JailRoot(); root != "" {
		command.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
	}
	text, runErr := m.Output(ctx, command)
	lost := keepHealthOutput(m, output)
	failures, err := failedTests([]byte(text))
	switch {
	case err != nil && runErr != nil:
		return passivecheck.Result{}, runErr
	case err != nil:
		return passivecheck.Result{}, fmt.Errorf("reading what health-checker says: %w", err)
	case len(failures) > 0:
		return failed("%s", strings.Join(failures, "; "))
	case lost != nil:
		return passed("health-checker finds nothing; its output could not be kept: %v", lost)
	}
	return passed("health-checker finds nothing")
}

// healthProgram returns the path of health-checker in the jail; empty when it is not there.
func healthProgram(m *machine.Machine) string {
	for _, dir := range []string{"/usr/local/bin", "/usr/bin", "/usr/local/sbin", "/usr/sbin"} {
		program := path.Join(dir, healthChecker)
		file, err := m.Files.Path(program)
		if err != nil {
			continue // not here
		}
		_ = file.Close()
		if m.JailRoot() == "" {
			return filepath.Join(m.Root, program)
		}
		return program
	}
	return ""
}

// maxDepth is how deep the answer of health-checker may be nested.
const maxDepth = 32

// failedTests returns the named checks with status FAIL, as <test>.<check>: <error>. Status ERROR and a FAIL without a name do not count.
func failedTests(answer []byte) ([]string, error) {
	var root any
	if err := json.Unmarshal(answer, &root); err != nil {
		return nil, err
	}
	var out []string
	walkTests(root, nil, &out)
	slices.Sort(out)
	return slices.Compact(out), nil
}

// walkTests collects failures below value, and reports whether there are any. names are those of what value is in.
func walkTests(value any, names []string, out *[]string) bool {
	if len(names) > maxDepth {
		return false
	}
	switch value := value.(type) {
	case []any:
		found := false
		for _, element := range value {
			found = walkTests(element, names, out) || found
		}
		return found
	case map[string]any:
		name, _ := value["name"].(string)
		if name != "" {
			names = append(slices.Clone(names), name)
		}
		found := false
		for _, key := range slices.Sorted(maps.Keys(value)) {
			found = walkTests(value[key], names, out) || found
		}
		// A test fails because of one of its checks, which is the one to be named.
		status, message := verdict(value)
		if !found && name != "" && status == "FAIL" && len(names) > 1 {
			*out = append(*out, strings.TrimSuffix(strings.Join(names[len(names)-2:], ".")+": "+message, ": "))
			return true
		}
		return found
	}
	return false
}

// verdict returns the status and the error of an object, which may have them in an object "state".
func verdict(object map[string]any) (status, message string) {
	for _, from := range []any{object, object["state"]} {
		if from, ok := from.(map[string]any); ok {
			if s, ok := from["status"].(string); ok && status == "" {
				status = s
			}
			if e, ok := from["error"].(string); ok && message == "" {
				message = e
			}
		}
	}
	return status, message
}
