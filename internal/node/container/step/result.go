// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"bytes"
	"strconv"
	"strings"
)

// Result is what the tasks of a step are told: how they get into their container.
type Result struct {
	// PID is a process in the namespaces of the container.
	PID int
	// Namespaces are those to enter besides user and mnt.
	Namespaces []string
	// Directory is where tasks start.
	Directory string
	// Capable is true for tasks that keep all capabilities in the user namespace.
	Capable bool
	// Set are variables to set, NAME=VALUE. Unset are names.
	Set, Unset []string
}

// Records returns the result as the plugin reads it. What has a zero byte is left out.
func (r *Result) Records() []byte {
	var b bytes.Buffer
	add := func(kind byte, text string) {
		if !strings.Contains(text, "\x00") {
			b.WriteByte(kind)
			b.WriteString(text)
			b.WriteByte(0)
		}
	}
	add('P', strconv.Itoa(r.PID))
	for _, name := range r.Namespaces {
		add('N', name)
	}
	add('W', r.Directory)
	if r.Capable {
		add('C', "")
	}
	for _, name := range r.Unset {
		add('-', name)
	}
	for _, variable := range r.Set {
		add('+', variable)
	}
	add('R', "")
	return b.Bytes()
}

// Refusal returns the records of a container that there is not, for a reason.
func Refusal(err error) []byte {
	return []byte("E" + strings.ReplaceAll(err.Error(), "\x00", "") + "\x00")
}
