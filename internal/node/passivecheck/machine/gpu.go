// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/coxswain-hpc/coxswain/internal/node/passivecheck"
)

// driverRoot is where the driver containers of NVIDIA's operator mount the root file system with the driver.
const driverRoot = "/run/nvidia/driver"

// nvidiaSMI is the program's path there.
const nvidiaSMI = "/usr/bin/nvidia-smi"

// HasNvidiaSMI reports whether nvidia-smi is installed.
func (m *Machine) HasNvidiaSMI() bool { return m.driver() != "" || m.Program("nvidia-smi") != "" }

// driver returns the root directory for nvidia-smi; empty for that of the container.
func (m *Machine) driver() string {
	if _, err := os.Stat(m.Path(driverRoot + nvidiaSMI)); err != nil {
		return ""
	}
	return m.Path(driverRoot)
}

// NvidiaSMI runs nvidia-smi, that of the driver where there is one.
func (m *Machine) NvidiaSMI(ctx context.Context, args ...string) (string, error) {
	root := m.driver()
	if root == "" {
		return m.run(ctx, "nvidia-smi", args...)
	}
	ctx, cancel := context.WithTimeout(ctx, programTimeout)
	defer cancel()
	command := exec.CommandContext(ctx, nvidiaSMI, args...) //nolint:gosec // a program of the driver, without a shell
	command.Dir, command.SysProcAttr = "/", &syscall.SysProcAttr{Chroot: root}
	return m.Output(ctx, command)
}

// Platform returns which GPUs the node has. The driver shows them in /proc, which takes no time; nvidia-smi is asked where it does not.
func (m *Machine) Platform(ctx context.Context) (passivecheck.Platform, error) {
	return m.platform.get(func() (passivecheck.Platform, error) {
		models, err := m.models(ctx)
		if err != nil {
			return passivecheck.Platform{}, fmt.Errorf("finding the GPUs of the node: %w", err)
		}
		return passivecheck.Platform{Models: models}, nil
	})
}

func (m *Machine) models(ctx context.Context) ([]string, error) {
	var models []string
	files, _ := filepath.Glob(m.Path("/proc/driver/nvidia/gpus/*/information")) // a pattern that is well formed
	slices.Sort(files)
	for _, file := range files {
		content, err := os.ReadFile(file) //nolint:gosec // a file of the kernel
		if err != nil {
			return nil, err
		}
		models = append(models, modelIn(string(content)))
	}
	if len(files) > 0 || !m.HasNvidiaSMI() {
		return models, nil
	}
	text, err := m.NvidiaSMI(ctx, "--query-gpu=name", "--format=csv,noheader")
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			models = append(models, line)
		}
	}
	return models, err
}

func modelIn(information string) string {
	for line := range strings.Lines(information) {
		if key, value, found := strings.Cut(line, ":"); found && key == "Model" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
