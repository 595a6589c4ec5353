// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

const statusHelp = `Shows Slurm clusters as trees: a SlurmCluster, or a Controller that was made without one, and below it Accounting, RestApi, LoginSets
and NodeSets.

For each object that is not ready it shows the reason and message of condition Ready. Lines "condition …" are other conditions that need
attention. A line "… out of service" counts the workers whose Slurm nodes get no new jobs, by reason; "kubectl slurm explain node" shows
more about each.

It does not read pods: the counts are in the status of the objects.

Exit codes: 0 all objects are ready, 1 an error, 2 an object is not ready.`

const statusExamples = `  # All clusters of the namespace
  kubectl slurm status

  # One cluster, with the messages of ready objects as well
  kubectl slurm status demo -n slurm -o wide

  # All clusters; the exit code says whether all is well
  kubectl slurm status -A`

func (s *session) statusCommand(ctx context.Context) *cobra.Command {
	var output format
	var everywhere bool
	command := &cobra.Command{
		Use:     "status [NAME]",
		Short:   "Show clusters, and why something is not ready",
		Long:    statusHelp,
		Example: statusExamples,
		Args:    cobra.MaximumNArgs(1),

		ValidArgsFunction: s.complete(ctx, 1, clusterNames()),
		RunE: func(_ *cobra.Command, args []string) error {
			c, err := s.connect()
			if err != nil {
				return err
			}
			if everywhere {
				c.namespace = ""
			}
			objects, err := s.gatherObjects(ctx, c, c.namespace)
			if err != nil {
				return err
			}
			tree := NewTree(objects)
			if len(args) > 0 {
				if tree = tree.Named(args[0]); len(tree.Clusters) == 0 {
					return fmt.Errorf("there is no SlurmCluster or Controller %s%s", args[0], inNamespace(c.namespace))
				}
			}
			return s.printTree(tree, output, c.namespace)
		},
	}
	output.addTo(command)
	command.Flags().BoolVarP(&everywhere, "all-namespaces", "A", false, "Show the clusters of all namespaces.")
	return command
}

func (s *session) printTree(tree Tree, output format, namespace string) error {
	done, err := writeData(s.Streams.Out, output, tree)
	switch {
	case err != nil:
		return err
	case done:
	case len(tree.Clusters) == 0:
		fmt.Fprintf(s.Streams.ErrOut, "There is no Slurm cluster%s.\n", inNamespace(namespace))
	default:
		printer := treePrinter{now: s.Now(), wide: output == formatWide, namespaces: namespace == ""}
		if err := printer.table(tree).write(s.Streams.Out, s.Colour); err != nil {
			return err
		}
	}
	if !tree.AllReady() {
		return exit{code: exitWrong}
	}
	return nil
}

// inNamespace returns where something was looked for.
func inNamespace(namespace string) string {
	if namespace == "" {
		return " in any namespace"
	}
	return " in namespace " + namespace
}

// gatherObjects reads all SlurmClusters and components of a namespace, or of all for an empty one.
func (s *session) gatherObjects(ctx context.Context, c client.Reader, namespace string) (Objects, error) {
	var clusters nebiusv1.SlurmClusterList
	var controllers slinkyv1beta1.ControllerList
	var accountings slinkyv1beta1.AccountingList
	var restAPIs slinkyv1beta1.RestApiList
	var loginSets slinkyv1beta1.LoginSetList
	var nodeSets slinkyv1beta1.NodeSetList
	answers := make(chan error)
	list := func(what string, into client.ObjectList) {
		err := c.List(ctx, into, client.InNamespace(namespace))
		if err != nil {
			err = fmt.Errorf("listing %s%s: %w", what, inNamespace(namespace), err)
		}
		answers <- err
	}
	go func() {
		err := c.List(ctx, &clusters, client.InNamespace(namespace))
		switch {
		case apierrors.IsNotFound(err): // the CRD is not installed
			err = nil
		case apierrors.IsForbidden(err):
			// The components show the same, and a caller may have the rights to one group alone.
			fmt.Fprintln(s.Streams.ErrOut, "Warning: SlurmClusters are not shown:", err)
			err = nil
		}
		answers <- err
	}()
	go list("Controllers", &controllers)
	go list("Accountings", &accountings)
	go list("RestApis", &restAPIs)
	go list("LoginSets", &loginSets)
	go list("NodeSets", &nodeSets)
	var problems []error
	for range 6 {
		problems = append(problems, <-answers)
	}
	if err := errors.Join(problems...); err != nil {
		return Objects{}, err
	}
	return Objects{
		Clusters: clusters.Items, Controllers: controllers.Items, Accountings: accountings.Items,
		RestAPIs: restAPIs.Items, LoginSets: loginSets.Items, NodeSets: nodeSets.Items,
	}, nil
}
