// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
)

// variable is a variable as a shell writes it, or another dollar sign.
var variable = regexp.MustCompile(`\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*)|)`)

// addExtra gives slurmd the text that its node carries. Variables in it are those of the container. Soperator lets a shell
// evaluate the text, and with it whatever commands are in it; here the kubelet puts the values in, as $(NAME) in an argument.
func (c *composer) addExtra(slurmd *corev1.Container, worker *nebiusv1.Worker) {
	var unknown []string
	text := variable.ReplaceAllStringFunc(worker.SlurmNodeExtra, func(found string) string {
		name := strings.Trim(found, "${}")
		if name == "" {
			return "$$" // what the kubelet makes one dollar sign of
		}
		has := func(e corev1.EnvVar) bool { return e.Name == name }
		if !slices.ContainsFunc(slurmd.Env, has) {
			i := slices.IndexFunc(c.contractVariables(worker), has)
			if i < 0 {
				unknown = append(unknown, name)
				return ""
			}
			slurmd.Env = append(slurmd.Env, c.contractVariables(worker)[i])
		}
		return "$(" + name + ")"
	})
	slurmd.Args = append(slurmd.Args, "--extra", text)
	c.note(len(unknown) > 0, workerPath+".slurmNodeExtra: left empty, because the container has no such variable: "+strings.Join(unknown, ", "))
}

// contractVariables are the variables of Soperator's slurmd (docs/contributors/predecessors/soperator-objects.md#variables-of-workers) that
// ours has only where they are used.
func (c *composer) contractVariables(worker *nebiusv1.Worker) []corev1.EnvVar {
	field := func(name, path string) corev1.EnvVar {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
	}
	memory := worker.Slurmd.Resources.Memory().Value() >> 20
	return []corev1.EnvVar{
		field("K8S_POD_NAME", "metadata.name"), field("K8S_POD_NAMESPACE", "metadata.namespace"), field("INSTANCE_ID", "spec.nodeName"),
		{Name: "K8S_SERVICE_NAME", Value: c.cluster.Name + "-worker-svc"}, {Name: "SLURM_REAL_MEMORY", Value: strconv.FormatInt(memory, 10)},
	}
}
