// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmd

import (
	"fmt"
	"strconv"
	"strings"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

// CloudConf is what the record of a node of a NodeSet is made of before its slurmd registers: the keys of its line in slurm.conf(5). It
// is what the slurmd would register, and what is known of the machine where that is silent.
func CloudConf(n *slinkyv1beta1.NodeSet, machine rest.Hardware) (string, error) {
	said, err := nodeConf(n)
	if err != nil {
		return "", err
	}
	merged := said
	for _, found := range []struct{ key, value, unless string }{
		{"CPUs", count(machine.CPUs), "Procs"},
		{"Sockets", count(machine.Sockets), "SocketsPerBoard"},
		{"CoresPerSocket", count(machine.Cores), ""},
		{"ThreadsPerCore", count(machine.Threads), ""},
		{"RealMemory", count(machine.RealMemory), ""},
		{"CoreSpecCount", count(machine.CoreSpecCount), "CpuSpecList"},
		{"MemSpecLimit", count(machine.MemSpecLimit), ""},
		{"Gres", withoutSockets(machine.Gres), ""},
	} {
		_, given := said.Get(found.key)
		_, other := said.Get(found.unless)
		if found.value != "" && !given && !other {
			merged.Add(found.key, found.value)
		}
	}
	text, err := merged.Text()
	if err != nil {
		return "", fmt.Errorf("writing what the nodes of NodeSet %s/%s are: %w", n.Namespace, n.Name, err)
	}
	return text, nil
}

// count is a number as slurm.conf has it; nothing for zero, Slurm's value for what it does not know.
func count[T int | int64](n T) string {
	if n <= 0 {
		return ""
	}
	return strconv.FormatInt(int64(n), 10)
}

// withoutSockets is a list of generic resources without the sockets that they belong to, which slurm.conf does not have:
// "gpu:a100:2(S:0-1)" becomes "gpu:a100:2".
func withoutSockets(gres string) string {
	for {
		before, rest, found := strings.Cut(gres, "(")
		if !found {
			return gres
		}
		_, after, _ := strings.Cut(rest, ")")
		gres = before + after
	}
}
