// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package step has what a SPANK plugin and the program "container" say to each other about a step that runs in a container, and what
// follows from it: the environment of its tasks. images/spank/container.c is the other side. It does no input or output but reading
// and writing these records.
package step

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/coxswain-hpc/coxswain/internal/node/image/mount"
)

// BatchStep is the number of the step that runs a batch script (slurm/slurm.h: SLURM_BATCH_SCRIPT).
const BatchStep = 0xfffffffb

// Request is what a step is asked to run in.
type Request struct {
	// Image is the argument of --container-image; empty for a container that has a name.
	Image string
	// Mounts are those of --container-mounts.
	Mounts []mount.Mount
	// Workdir is the argument of --container-workdir; empty for the directory that the image names.
	Workdir string
	// Name is the argument of --container-name, with its action.
	Name string
	// Save is the argument of --container-save.
	Save string
	// Env has the names of --container-env.
	Env []string
	// Unshare has the namespaces of --container-unshare.
	Unshare []string
	// MountHome, RemapRoot, Entrypoint and Writable are flags with opposites; nil where neither was given.
	MountHome, RemapRoot, Entrypoint, Writable *bool
	// EntrypointLog is --container-entrypoint-log.
	EntrypointLog bool
	// Job and Step are the numbers of both. Tasks is how many tasks of the step run on this node.
	Job, Step, Tasks uint32
	// UID and GID are the user of the job.
	UID, GID uint32
	// Directory is the working directory of the job.
	Directory string
	// Script is the file of a batch script; empty for other steps.
	Script string
	// JobScope is true if containers with names end with their jobs.
	JobScope bool
	// Importer is a program of the administrator that gets images; empty for none.
	Importer string
	// Environment is the environment of the job, NAME=VALUE.
	Environment []string
}

// ErrCut is the error of a request whose last record has no end.
var ErrCut = errors.New("the request is cut off")

// Read reads the records of a request. Its errors are sentences for the user.
func Read(from io.Reader) (*Request, error) {
	var r Request
	records := bufio.NewReader(from)
	for {
		record, err := records.ReadString(0)
		switch {
		case errors.Is(err, io.EOF) && record == "":
			return &r, nil
		case errors.Is(err, io.EOF):
			return nil, ErrCut
		case err != nil:
			return nil, fmt.Errorf("reading the request: %w", err)
		}
		if err := r.take(strings.TrimSuffix(record, "\x00")); err != nil {
			return nil, err
		}
	}
}

func (r *Request) take(record string) error {
	if variable, ok := strings.CutPrefix(record, ":"); ok {
		r.Environment = append(r.Environment, variable)
		return nil
	}
	key, value, _ := strings.Cut(record, "=")
	if text := r.text(key); text != nil {
		*text = value
		return nil
	}
	if flag := r.flag(key); flag != nil {
		*flag = new(value == "yes")
		return nil
	}
	if number := r.number(key); number != nil {
		n, err := strconv.ParseUint(value, 10, 32)
		*number = uint32(n)
		if err != nil {
			return fmt.Errorf("the request has no number %q: %w", key, err)
		}
		return nil
	}
	var err error
	switch key {
	case "mounts":
		r.Mounts, err = mount.Parse(value)
	case "env":
		r.Env, err = names(value)
	case "unshare":
		r.Unshare, err = namespaces(value)
	case "scope":
		r.JobScope = value == "job"
	case "entrypoint_log":
		r.EntrypointLog = value == "yes"
	default:
		err = fmt.Errorf("the request has the unknown key %q: plugin and program are of different releases", key)
	}
	return err
}

func (r *Request) text(key string) *string {
	switch key {
	case "image":
		return &r.Image
	case "workdir":
		return &r.Workdir
	case "name":
		return &r.Name
	case "save":
		return &r.Save
	case "directory":
		return &r.Directory
	case "script":
		return &r.Script
	case "importer":
		return &r.Importer
	}
	return nil
}

func (r *Request) flag(key string) **bool {
	switch key {
	case "mount_home":
		return &r.MountHome
	case "remap_root":
		return &r.RemapRoot
	case "entrypoint":
		return &r.Entrypoint
	case "writable":
		return &r.Writable
	}
	return nil
}

func (r *Request) number(key string) *uint32 {
	switch key {
	case "job":
		return &r.Job
	case "step":
		return &r.Step
	case "tasks":
		return &r.Tasks
	case "uid":
		return &r.UID
	case "gid":
		return &r.GID
	}
	return nil
}

// names returns the names of --container-env.
func names(argument string) ([]string, error) {
	out := strings.Split(argument, ",")
	for _, name := range out {
		if name == "" || strings.Contains(name, "=") {
			return nil, fmt.Errorf("--container-env: %q is no name of a variable", name)
		}
	}
	return out, nil
}

// namespaces returns the namespaces of --container-unshare.
func namespaces(argument string) ([]string, error) {
	out := strings.Split(argument, ",")
	for _, name := range out {
		if name != "net" && name != "ipc" && name != "uts" {
			return nil, fmt.Errorf("--container-unshare: unknown namespace '%s'", name)
		}
	}
	return out, nil
}
