// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// fieldManager owns what the plugin writes.
const fieldManager = "kubectl-slurm"

const cordonHelp = `Takes workers out of service by hand, and returns them. NODE is the name of a Slurm node.

"cordon" and "drain" set annotation nodeset.slinky.slurm.net/pod-cordon of the pod. The operator then drains the Slurm node, with the
reason "slurm-operator: Pod was cordoned". Jobs run on to their end, and no new ones start. Nothing is deleted. The annotation is lost
with the pod: a worker that is created again is not cordoned.

"drain" also records your reason, in annotation coxswain.dev/cordon-reason. "kubectl slurm explain" shows it; Slurm does not.

"uncordon" and "undrain" are the same: they remove both annotations. The operator undrains the Slurm node when there is no other reason to
drain it. A drain that somebody set in Slurm stays.

The annotations belong to field manager kubectl-slurm. Pods that the operator has cordoned stay cordoned.

Exit codes: 0 done, or nothing to do, 1 an error (with several nodes, the others are done).`

const cordonExamples = `  # No new jobs on two nodes
  kubectl slurm cordon worker-3 worker-4

  # The same, with a reason
  kubectl slurm drain worker-3 --reason="disk is replaced, ticket 812"

  # Return it to service
  kubectl slurm undrain worker-3`

func (s *session) cordonCommands(ctx context.Context) []*cobra.Command {
	command := func(use, short string, act func(context.Context, *connection, string) (string, error)) *cobra.Command {
		return &cobra.Command{
			Use: use + " NODE...", Short: short, Long: cordonHelp, Example: cordonExamples, Args: cobra.MinimumNArgs(1),
			ValidArgsFunction: s.complete(ctx, maxArguments, nodeNames()),
			RunE: func(_ *cobra.Command, args []string) error {
				c, err := s.connect()
				if err != nil {
					return err
				}
				var problems []error
				for _, name := range args {
					text, err := act(ctx, c, name)
					if err != nil {
						problems = append(problems, err)
						continue
					}
					fmt.Fprintln(s.Streams.Out, oneLine(text))
				}
				return errors.Join(problems...)
			},
		}
	}
	var reason string
	drain := command("drain", "Stop new jobs on a worker, and record why", func(ctx context.Context, c *connection, name string) (string, error) {
		return cordon(ctx, c, name, reason)
	})
	drain.Flags().StringVar(&reason, "reason", "", "The reason, which \"kubectl slurm explain\" shows. Required.")
	_ = drain.MarkFlagRequired("reason")
	return []*cobra.Command{
		command("cordon", "Stop new jobs on a worker", func(ctx context.Context, c *connection, name string) (string, error) {
			return cordon(ctx, c, name, "")
		}),
		command("uncordon", "Allow new jobs on a worker again", uncordon),
		drain,
		command("undrain", "Allow new jobs on a worker again", uncordon),
	}
}

// cordon sets the annotations of the pod of a Slurm node, and returns what follows. Without a reason, one that is there stays.
func cordon(ctx context.Context, c *connection, name, reason string) (string, error) {
	pod, err := podOfNode(ctx, c, name)
	if err != nil {
		return "", err
	}
	if reason == "" {
		reason = pod.Annotations[slinkyv1beta1.AnnotationPodCordonReason]
	}
	annotations := map[string]string{slinkyv1beta1.AnnotationPodCordon: "true"}
	if reason != "" {
		annotations[slinkyv1beta1.AnnotationPodCordonReason] = reason
	}
	if err := own(ctx, c, pod, annotations); err != nil {
		return "", fmt.Errorf("cordoning pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return cordoned(pod, name, reason), nil
}

// cordoned returns what follows from a cordon.
func cordoned(pod *corev1.Pod, name, reason string) string {
	text := fmt.Sprintf("%s: pod %s/%s is cordoned by field manager %s. The operator drains the Slurm node; jobs run on to their end.",
		name, pod.Namespace, pod.Name, fieldManager)
	if reason != "" {
		text += " The reason is on the pod, not in Slurm: " + reason
	}
	return text
}

// own applies annotations to a pod, so that they are all that the plugin owns of it.
func own(ctx context.Context, c *connection, pod *corev1.Pod, annotations map[string]string) error {
	// With the UID it is this pod or none: another one of that name would be made, or be cordoned.
	apply := corev1ac.Pod(pod.Name, pod.Namespace).WithUID(pod.UID).WithAnnotations(annotations)
	return c.Apply(ctx, apply, client.FieldOwner(fieldManager), client.ForceOwnership)
}

// uncordon removes what users have set on the pod of a Slurm node, and returns what follows.
func uncordon(ctx context.Context, c *connection, name string) (string, error) {
	pod, err := podOfNode(ctx, c, name)
	if err != nil {
		return "", err
	}
	if pod.Annotations[slinkyv1beta1.AnnotationPodCordon] == "" && pod.Annotations[slinkyv1beta1.AnnotationPodCordonReason] == "" {
		return uncordoned(pod, name, false), nil
	}
	if slices.ContainsFunc(pod.ManagedFields, func(e metav1.ManagedFieldsEntry) bool { return e.Manager == fieldManager }) {
		err = own(ctx, c, pod, nil)
	}
	if err == nil && !cordonedByOperator(pod) {
		// A user may have set it by "kubectl annotate".
		err = c.Patch(ctx, pod, client.RawPatch("application/merge-patch+json", removal(pod)), client.FieldOwner(fieldManager))
	}
	if err != nil {
		return "", fmt.Errorf("uncordoning pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return uncordoned(pod, name, true), nil
}

// removal returns the merge patch that takes the annotations of users off this pod, and none of the same name.
func removal(pod *corev1.Pod) []byte {
	return fmt.Appendf(nil, `{"metadata":{"uid":%q,"annotations":{%q:null,%q:null}}}`,
		pod.UID, slinkyv1beta1.AnnotationPodCordon, slinkyv1beta1.AnnotationPodCordonReason)
}

// cordonedByOperator reports whether the operator wants the pod cordoned, whatever users do.
func cordonedByOperator(pod *corev1.Pod) bool {
	return pod.Annotations[slinkyv1beta1.AnnotationRetired] != "" || pod.Annotations[slinkyv1beta1.AnnotationNodeCordoned] == "true"
}

// uncordoned returns what follows when users no longer want a pod cordoned. removed is true if one did.
func uncordoned(pod *corev1.Pod, name string, removed bool) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s: pod %s/%s ", name, pod.Namespace, pod.Name)
	switch {
	case pod.Annotations[slinkyv1beta1.AnnotationRetired] != "":
		text.WriteString("stays cordoned by the operator, which is removing it (" + pod.Annotations[slinkyv1beta1.AnnotationRetired] + ").")
	case cordonedByOperator(pod):
		text.WriteString("stays cordoned by the operator: Kubernetes node " + pod.Spec.NodeName + " is cordoned.")
	case removed:
		text.WriteString("is no longer cordoned.")
	default:
		text.WriteString("was not cordoned.")
	}
	others := slices.DeleteFunc(cordonOwners(pod), func(manager string) bool { return manager == fieldManager })
	if cordonedByOperator(pod) && len(others) > 0 {
		text.WriteString(" " + strings.Join(others, ", ") + " has cordoned it as well: run uncordon again after the operator has uncordoned it.")
	}
	out := workerpod.Condition(pod, slinkyv1beta1.PodConditionOutOfService)
	switch {
	case cordonedByOperator(pod):
	case out != nil && out.Status == corev1.ConditionTrue && out.Reason != slinkyv1beta1.ReasonCordoned && out.Reason != slinkyv1beta1.ReasonReturning:
		fmt.Fprintf(&text, " It still gets no new jobs (%s): %s.", out.Reason, out.Message)
	case removed:
		text.WriteString(" The operator undrains the Slurm node.")
	}
	return text.String()
}
