// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-hpc/coxswain/internal/render/pod"
)

// instanceVariable is the variable of workers with the name of their Kubernetes node.
const instanceVariable = "INSTANCE_ID"

// addInstance has the node carry the name of its Kubernetes node as InstanceId, which the exporter has as instance_id. An option of the
// user's comes later, and counts.
func (w *workers) addInstance() {
	pod.AddEnv(&w.container, pod.FieldEnv(instanceVariable, "spec.nodeName"))
	w.container.Args = append([]string{"--instance-id", "$(" + instanceVariable + ")"}, w.container.Args...)
}

// variable is a variable as a shell writes it, or another dollar sign.
var variable = regexp.MustCompile(`\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*)|)`)

// addExtra has the node carry a text, that of a field, as Extra. Variables in it are those of the container. Soperator lets a shell evaluate
// the text, and with it whatever commands are in it; here the kubelet puts the values in, as $(NAME) in an argument. others are variables of
// Soperator's slurmd that ours has only where they are used.
func (w *workers) addExtra(f *findings, text, path string, others ...corev1.EnvVar) {
	if text == "" {
		return
	}
	var unknown []string
	text = variable.ReplaceAllStringFunc(text, func(found string) string {
		name := strings.Trim(found, "${}")
		if name == "" {
			return "$$" // what the kubelet makes one dollar sign of
		}
		has := func(e corev1.EnvVar) bool { return e.Name == name }
		if !slices.ContainsFunc(w.container.Env, has) {
			i := slices.IndexFunc(others, has)
			if i < 0 {
				unknown = append(unknown, name)
				return ""
			}
			w.container.Env = append(w.container.Env, others[i])
		}
		return "$(" + name + ")"
	})
	w.container.Args = append(w.container.Args, "--extra", text)
	f.note(len(unknown) > 0, path+": left empty, because the container has no such variable: "+strings.Join(unknown, ", "))
}

// contractVariables are the variables of Soperator's slurmd (docs/contributors/predecessors/soperator-objects.md#variables-of-workers) that
// ours has only where they are used. service is that of the workers there.
func contractVariables(service string, requests corev1.ResourceList) []corev1.EnvVar {
	memory := requests.Memory().Value() >> 20
	return []corev1.EnvVar{
		pod.FieldEnv("K8S_POD_NAME", "metadata.name"), pod.FieldEnv("K8S_POD_NAMESPACE", "metadata.namespace"),
		{Name: "K8S_SERVICE_NAME", Value: service}, {Name: "SLURM_REAL_MEMORY", Value: strconv.FormatInt(memory, 10)},
	}
}
