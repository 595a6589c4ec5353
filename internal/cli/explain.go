// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

const explainHelp = `Explains why a worker exists, why it gets no new jobs, or why it has not been deleted yet. It reads the conditions and annotations of
the pod, the plan of its NodeSet, and whether the operator trusts Slurm's answers.

Name a worker by its Slurm node ("node") or by its pod ("pod"). -o wide prints the same as no -o.

Exit codes: 0 it is explained, 1 an error.`

const explainExamples = `  # Why is this Slurm node drained?
  kubectl slurm explain node worker-3

  # Why has this pod not been deleted?
  kubectl slurm explain pod demo-worker-3 -o yaml`

func (s *session) explainCommand(ctx context.Context) *cobra.Command {
	command := &cobra.Command{
		Use: "explain", Short: "Explain why a worker exists, is drained, or is not deleted yet", Long: explainHelp, Example: explainExamples, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return errors.New("say what to explain: node NAME, or pod NAME") },
	}
	add := func(use, short string, complete names, find func(context.Context, *connection, string) (*corev1.Pod, error)) {
		var output format
		sub := &cobra.Command{
			Use: use, Short: short, Long: explainHelp, Example: explainExamples, Args: cobra.ExactArgs(1),
			ValidArgsFunction: s.complete(ctx, 1, complete),
			RunE: func(_ *cobra.Command, args []string) error {
				c, err := s.connect()
				if err != nil {
					return err
				}
				pod, err := find(ctx, c, args[0])
				if apierrors.IsNotFound(err) {
					return missing(ctx, c, args[0], err)
				}
				if err != nil {
					return err
				}
				worker := Worker{Pod: pod}
				if worker.NodeSet, err = nodeSetOf(ctx, c, pod); err != nil {
					return err
				}
				if worker.Controller, err = controllerOf(ctx, c, pod); err != nil {
					return err
				}
				explanation := Explain(worker)
				if done, err := writeData(s.Streams.Out, output, explanation); done {
					return err
				}
				return explanation.write(s.Streams.Out)
			},
		}
		output.addTo(sub)
		command.AddCommand(sub)
	}
	add("node NAME", "Explain the worker of a Slurm node", nodeNames(), podOfNode)
	add("pod NAME", "Explain the worker of a pod", podMetadata(slinkyv1beta1.NameSlurmd, ""), workerPod)
	return command
}

// missing returns the error for a pod that is not there, with what a NodeSet plans with it.
func missing(ctx context.Context, c *connection, name string, err error) error {
	var sets slinkyv1beta1.NodeSetList
	if listing := c.List(ctx, &sets, client.InNamespace(c.namespace)); listing != nil {
		return err
	}
	for _, set := range sets.Items {
		for _, step := range set.Status.Plan {
			if step.Pod == name {
				return fmt.Errorf("%w; NodeSet %s plans: %s", err, set.Name, stepText(step))
			}
		}
	}
	return err
}

// write writes the explanation as text.
func (e Explanation) write(w io.Writer) error {
	text := fmt.Sprintf("Pod %s/%s is Slurm node %s", e.Namespace, e.Pod, e.SlurmNode)
	if e.Cluster != "" {
		text += " of cluster " + e.Cluster
	}
	if e.NodeSet != "" {
		text += ", a worker of NodeSet " + e.NodeSet
	}
	if e.KubernetesNode != "" {
		text += ", on Kubernetes node " + e.KubernetesNode
	}
	if _, err := fmt.Fprintln(w, oneLine(text)+"."); err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	var out table
	about := ""
	for _, s := range e.Sentences {
		title := s.About
		if title == about {
			title = ""
		}
		about = s.About
		out.rows = append(out.rows, []cell{{text: title}, {text: oneLine(s.Text)}})
	}
	return out.write(w, false)
}
