// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// labelName is the label with the daemon that runs in a pod.
const labelName = "app.kubernetes.io/name"

// podOfNode returns the worker pod of a Slurm node. Its label has the name, unless the pod uses the network of its Kubernetes node.
func podOfNode(ctx context.Context, c *connection, name string) (*corev1.Pod, error) {
	of := func(options ...client.ListOption) ([]corev1.Pod, error) {
		var pods corev1.PodList
		if err := c.List(ctx, &pods, append(options, client.InNamespace(c.namespace))...); err != nil {
			return nil, fmt.Errorf("listing the pods of Slurm node %s: %w", name, err)
		}
		var found []corev1.Pod
		for _, p := range pods.Items {
			if workerpod.SlurmNode(&p) == name {
				found = append(found, p)
			}
		}
		return found, nil
	}
	workers := client.MatchingLabels{labelName: slinkyv1beta1.NameSlurmd}
	found, err := of(workers, client.MatchingLabels{slinkyv1beta1.LabelPodHostname: name})
	if err == nil && len(found) == 0 {
		found, err = of(workers, client.MatchingFields{"spec.nodeName": name})
	}
	switch {
	case err != nil:
		return nil, err
	case len(found) == 0:
		return nil, fmt.Errorf("no worker pod in namespace %s is Slurm node %s", c.namespace, name)
	case len(found) > 1:
		var names []string
		for _, p := range found {
			names = append(names, p.Name)
		}
		return nil, fmt.Errorf("several clusters in namespace %s have a Slurm node %s: name one of the pods %s", c.namespace, name, strings.Join(names, ", "))
	}
	return &found[0], nil
}

// workerPod returns the worker pod of that name.
func workerPod(ctx context.Context, c *connection, name string) (*corev1.Pod, error) {
	var pod corev1.Pod
	if err := c.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: name}, &pod); err != nil {
		return nil, fmt.Errorf("reading pod %s/%s: %w", c.namespace, name, err)
	}
	if pod.Labels[labelName] != slinkyv1beta1.NameSlurmd {
		return nil, fmt.Errorf("pod %s/%s is not a worker: label %s is not %s", c.namespace, name, labelName, slinkyv1beta1.NameSlurmd)
	}
	return &pod, nil
}

// nodeSetOf returns the NodeSet that a worker pod belongs to, nil when it is gone.
func nodeSetOf(ctx context.Context, c *connection, pod *corev1.Pod) (*slinkyv1beta1.NodeSet, error) {
	for _, owner := range pod.OwnerReferences {
		if owner.Kind != "NodeSet" {
			continue
		}
		var set slinkyv1beta1.NodeSet
		err := c.Get(ctx, client.ObjectKey{Namespace: pod.Namespace, Name: owner.Name}, &set)
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading NodeSet %s/%s: %w", pod.Namespace, owner.Name, err)
		}
		return &set, nil
	}
	return nil, nil
}

// controllerOf returns the Controller of a worker pod, nil when it is gone.
func controllerOf(ctx context.Context, c *connection, pod *corev1.Pod) (*slinkyv1beta1.Controller, error) {
	name := pod.Labels[slinkyv1beta1.LabelCluster]
	if name == "" {
		return nil, nil
	}
	var controller slinkyv1beta1.Controller
	err := c.Get(ctx, client.ObjectKey{Namespace: pod.Namespace, Name: name}, &controller)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Controller %s/%s: %w", pod.Namespace, name, err)
	}
	return &controller, nil
}
