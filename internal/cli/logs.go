// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

const logsHelp = `Prints the log of a daemon.

COMPONENT is slurmctld, slurmdbd, slurmrestd, login or worker. NAME is the object that the pods belong to, or one of its pods. For a
worker it is the Slurm node. NAME may be left out if there is only one pod. If there are several slurmctlds, the active one is used.

slurmctld and slurmd write to a file that container "logfile" prints. Use --container=slurmctld to see what the program prints before it
opens that file.

Exit codes: 0 the log was printed, 1 an error.`

const logsExamples = `  # Follow slurmctld
  kubectl slurm logs slurmctld --follow --tail=20

  # What slurmd of a Slurm node said
  kubectl slurm logs worker worker-3

  # What a login container said before it ended
  kubectl slurm logs login demo-login --previous`

// components returns the daemons by the names of COMPONENT.
func components() map[string]string {
	return map[string]string{
		"slurmctld": slinkyv1beta1.NameSlurmctld, "slurmdbd": slinkyv1beta1.NameSlurmdbd, "slurmrestd": slinkyv1beta1.NameSlurmrestd,
		"login": slinkyv1beta1.NameLogin, "worker": slinkyv1beta1.NameSlurmd,
	}
}

func (s *session) logsCommand(ctx context.Context) *cobra.Command {
	var options corev1.PodLogOptions
	var tail int64
	command := &cobra.Command{
		Use: "logs COMPONENT [NAME]", Short: "Print the log of a daemon", Long: logsHelp, Example: logsExamples, Args: cobra.RangeArgs(1, 2),
		ValidArgsFunction: s.complete(ctx, 2, logNames),
		RunE: func(command *cobra.Command, args []string) error {
			if command.Flags().Changed("tail") {
				options.TailLines = &tail
			}
			c, err := s.connect()
			if err != nil {
				return err
			}
			name := ""
			if len(args) > 1 {
				name = args[1]
			}
			pod, container, err := logged(ctx, c, args[0], name)
			if err != nil {
				return err
			}
			if options.Container == "" {
				options.Container = container
			}
			return s.stream(ctx, pod, &options)
		},
	}
	command.Flags().BoolVarP(&options.Follow, "follow", "f", false, "Follow the log until Ctrl-C.")
	command.Flags().BoolVarP(&options.Previous, "previous", "p", false, "Print the log of the container before its last restart.")
	command.Flags().Int64Var(&tail, "tail", -1, "Number of lines from the end to begin with; default: all.")
	command.Flags().StringVarP(&options.Container, "container", "c", "", "Container to read instead of the one with the daemon's log.")
	return command
}

// logged returns the pod of a component, and the container with its log.
func logged(ctx context.Context, c *connection, component, name string) (*corev1.Pod, string, error) {
	daemon, ok := components()[component]
	switch {
	case !ok:
		return nil, "", fmt.Errorf("COMPONENT is %q: it must be slurmctld, slurmdbd, slurmrestd, login or worker", component)
	case daemon == slinkyv1beta1.NameSlurmd && name == "":
		return nil, "", fmt.Errorf("name the Slurm node: kubectl slurm logs worker NAME")
	case daemon == slinkyv1beta1.NameSlurmd:
		pod, err := podOfNode(ctx, c, name)
		if err != nil {
			return nil, "", err
		}
		return pod, logOf(pod, daemon), nil
	}
	pods, err := podsOf(ctx, c, daemon, name)
	if err != nil {
		return nil, "", err
	}
	pod, err := onePod(pods, daemon, name, c.namespace)
	if err != nil {
		return nil, "", err
	}
	return pod, logOf(pod, daemon), nil
}

// stream copies a log to the output, until it ends or the context does.
func (s *session) stream(ctx context.Context, pod *corev1.Pod, options *corev1.PodLogOptions) error {
	config, err := s.flags.ToRESTConfig()
	if err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	log, err := clientset.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, options).Stream(ctx)
	if err == nil {
		defer log.Close() //nolint:errcheck // it was only read
		_, err = io.Copy(s.Streams.Out, log)
	}
	if err != nil {
		return unlessEnded(ctx, fmt.Errorf("reading the log of container %s of pod %s/%s: %w", options.Container, pod.Namespace, pod.Name, err))
	}
	return nil
}
