// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

// completionTimeout is how long the shell waits for names from the API server. After that it offers none.
const completionTimeout = 3 * time.Second

// maxArguments is how many arguments the shell completes for a command that takes any number.
const maxArguments = 1000

// names lists what the next argument may be. args are those before it.
type names func(ctx context.Context, c *connection, args []string) ([]string, error)

// complete completes arguments from the API server, of which a command takes at most so many. A server that does not answer offers
// nothing: the shell has no place for an error.
func (s *session) complete(ctx context.Context, most int, list names) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(ctx, completionTimeout)
		defer cancel()
		c, err := s.connect()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		found, err := list(ctx, c, args)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		found = slices.DeleteFunc(found, func(name string) bool { return name == "" || slices.Contains(args, name) })
		slices.Sort(found)
		return slices.Compact(found), cobra.ShellCompDirectiveNoFileComp
	}
}

// objectNames returns the names of the objects of a kind. Only their metadata is asked for.
func objectNames(kinds ...metav1.TypeMeta) names {
	return func(ctx context.Context, c *connection, _ []string) ([]string, error) {
		var out []string
		for _, kind := range kinds {
			list := metav1.PartialObjectMetadataList{TypeMeta: kind}
			if err := c.List(ctx, &list, client.InNamespace(c.namespace)); err != nil {
				return out, err
			}
			for _, o := range list.Items {
				out = append(out, o.Name)
			}
		}
		return out, nil
	}
}

func typeOf(group, kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: group, Kind: kind + "List"}
}

func clusterNames() names {
	return objectNames(typeOf(slinkyv1beta1.GroupVersion.String(), "Controller"), typeOf(nebiusv1.GroupVersion.String(), "SlurmCluster"))
}

func controllerNames() names {
	return objectNames(typeOf(slinkyv1beta1.GroupVersion.String(), "Controller"))
}

func nodeSetNames() names { return objectNames(typeOf(slinkyv1beta1.GroupVersion.String(), "NodeSet")) }

func loginSetNames() names {
	return objectNames(typeOf(slinkyv1beta1.GroupVersion.String(), "LoginSet"))
}

// podMetadata returns the names, or the values of a label, of the pods of a daemon.
func podMetadata(daemon, label string) names {
	return func(ctx context.Context, c *connection, _ []string) ([]string, error) {
		list := metav1.PartialObjectMetadataList{TypeMeta: typeOf(corev1.SchemeGroupVersion.String(), "Pod")}
		if err := c.List(ctx, &list, client.InNamespace(c.namespace), client.MatchingLabels{labelName: daemon}); err != nil {
			return nil, err
		}
		var out []string
		for _, o := range list.Items {
			if label == "" {
				out = append(out, o.Name)
			} else {
				out = append(out, o.Labels[label])
			}
		}
		return out, nil
	}
}

// nodeNames returns the Slurm nodes of workers.
func nodeNames() names { return podMetadata(slinkyv1beta1.NameSlurmd, slinkyv1beta1.LabelPodHostname) }

// logNames returns the components, and behind one its objects or Slurm nodes.
func logNames(ctx context.Context, c *connection, args []string) ([]string, error) {
	if len(args) == 0 {
		var out []string
		for name := range components() {
			out = append(out, name)
		}
		return out, nil
	}
	daemon := components()[args[0]]
	if daemon == slinkyv1beta1.NameSlurmd {
		return nodeNames()(ctx, c, args)
	}
	return podMetadata(daemon, labelInstance)(ctx, c, args)
}
