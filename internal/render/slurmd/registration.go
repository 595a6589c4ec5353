// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmd

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/render/label"
	"github.com/coxswain-hpc/coxswain/internal/render/pod"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

// Registration is a digest of what the slurmd of a pod registers: its --conf, and what the pod may use of the machine. Slurm takes it
// over only for a node that it does not have. Where the node is in the network is not part of it: the operator keeps that right while
// the worker runs. Neither is the drain until checks have passed.
func Registration(p *corev1.Pod) string {
	content := map[string][]byte{}
	for _, c := range p.Spec.Containers {
		if c.Name != slinkyv1beta1.NameSlurmd {
			continue
		}
		for i, arg := range c.Args {
			if i > 0 && c.Args[i-1] == "--conf" {
				said, _, _ := strings.Cut(strings.Trim(arg, "'"), " Topology='")
				said = strings.Replace(said, drainedUntilChecked, "", 1)
				content["--conf"] = append(content["--conf"], said+" "...)
			}
		}
		for _, e := range c.Env {
			if slices.Contains([]string{"SLURMD_OPTIONS", "POD_CPUS", "POD_MEMORY"}, e.Name) && e.Value != "" {
				content[e.Name] = []byte(e.Value)
			}
		}
	}
	return label.Digest(content)[:10]
}

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

// kubeNodeVariable is the environment variable with the name of the Kubernetes node.
const kubeNodeVariable = "POD_NODE_NAME"

// useHostNetwork prepares a worker for the network of its Kubernetes node.
func useHostNetwork(spec *corev1.PodSpec) {
	nameAfterKubeNode(spec)
	if spec.DNSPolicy == "" {
		// By default such a pod asks the DNS servers of its node, which have no Services, and slurmd never finds slurmctld.
		spec.DNSPolicy = corev1.DNSClusterFirstWithHostNet
	}
}

// nameAfterKubeNode lets slurmd register by the name of the Kubernetes node, by which the operator looks for it. Without -N it takes
// the host name of the machine, which may be a shorter one, or another. The user's own option comes later, and counts.
func nameAfterKubeNode(spec *corev1.PodSpec) {
	for i := range spec.Containers {
		c := &spec.Containers[i]
		if c.Name != slinkyv1beta1.NameSlurmd {
			continue
		}
		pod.AddEnv(c, pod.FieldEnv(kubeNodeVariable, "spec.nodeName"))
		c.Args = append([]string{"-N", "$(" + kubeNodeVariable + ")"}, c.Args...)
	}
}
