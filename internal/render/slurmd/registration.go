// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmd

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/render/label"
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
