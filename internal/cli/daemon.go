// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

// labelInstance is the label with the name of the object that a pod belongs to.
const labelInstance = "app.kubernetes.io/instance"

// logContainer is the container of slurmctld and of slurmd that prints the log file of the daemon.
const logContainer = "logfile"

// podsOf returns the pods in which a daemon runs, such as slurmctld; with a name only those of that object, or the pod of that name.
func podsOf(ctx context.Context, c *connection, daemon, name string) ([]corev1.Pod, error) {
	var pods corev1.PodList
	if err := c.List(ctx, &pods, client.InNamespace(c.namespace), client.MatchingLabels{labelName: daemon}); err != nil {
		return nil, fmt.Errorf("listing the pods of %s in namespace %s: %w", daemon, c.namespace, err)
	}
	return slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool { return name != "" && p.Labels[labelInstance] != name && p.Name != name }), nil
}

// onePod returns the pod of a daemon to look at: the slurmctld that is in charge, or the only one. Which of several is meant, a
// user has to name.
func onePod(pods []corev1.Pod, daemon, name, namespace string) (*corev1.Pod, error) {
	active := func(p corev1.Pod) bool { return p.Labels[slinkyv1beta1.LabelControllerActive] == "true" }
	if i := slices.IndexFunc(pods, active); i >= 0 && !slices.ContainsFunc(pods[i+1:], active) && sameInstance(pods) {
		return &pods[i], nil
	}
	switch len(pods) {
	case 0:
		of := ""
		if name != "" {
			of = " of " + name
		}
		return nil, fmt.Errorf("there is no pod of %s%s in namespace %s", daemon, of, namespace)
	case 1:
		return &pods[0], nil
	}
	names := make([]string, 0, len(pods))
	for _, p := range pods {
		names = append(names, p.Name)
	}
	slices.Sort(names)
	return nil, fmt.Errorf("there are several pods of %s in namespace %s: name one of %s", daemon, namespace, strings.Join(names, ", "))
}

// sameInstance reports whether pods belong to one object.
func sameInstance(pods []corev1.Pod) bool {
	return !slices.ContainsFunc(pods, func(p corev1.Pod) bool { return p.Labels[labelInstance] != pods[0].Labels[labelInstance] })
}

// logOf returns the container of a pod in which the log of a daemon is.
func logOf(p *corev1.Pod, daemon string) string {
	if slices.ContainsFunc(p.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == logContainer }) {
		return logContainer
	}
	return daemon
}
