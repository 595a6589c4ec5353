// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

const planHelp = `Shows what is going to happen to the workers of NodeSets, in order, and what that waits for.

Below the plan are the edits of slurm.conf that wait for jobs, from condition EditWaits of the Controllers. "kubectl slurm diff" shows them
for an edit that is not applied yet.

The status of a NodeSet has at most 32 steps; a line says how many more there are. While the NodeSet has annotation
coxswain.dev/dry-run: "true", the operator carries out none of them.

Exit codes: 0 the plan is shown, even if it is empty, 1 an error.`

const planExamples = `  # What happens to all workers of the namespace
  kubectl slurm plan

  # Follow the plan of one NodeSet
  kubectl slurm plan demo-worker --watch`

func (s *session) planCommand(ctx context.Context) *cobra.Command {
	var output format
	var follow bool
	command := &cobra.Command{
		Use: "plan [NODESET]", Short: "Show the next steps for workers, and what they wait for",
		Long: planHelp, Example: planExamples, Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: s.complete(ctx, 1, nodeSetNames()),
		RunE: func(_ *cobra.Command, args []string) error {
			c, err := s.connect()
			if err != nil {
				return err
			}
			p := planner{session: s, connection: c, output: output}
			if len(args) > 0 {
				p.name = args[0]
			}
			version, err := p.show(ctx)
			if err != nil || !follow {
				return err
			}
			return p.follow(ctx, version)
		},
	}
	output.addTo(command)
	command.Flags().BoolVarP(&follow, "watch", "w", false, "Show the plan again whenever it changes.")
	return command
}

// planner reads and prints plans.
type planner struct {
	*session
	*connection
	// name is the name of the only NodeSet to show; empty for all.
	name   string
	output format
	// printed is what was printed last.
	printed []byte
}

// show lists the NodeSets and prints their plans. It returns the resource version of the list.
func (p *planner) show(ctx context.Context) (string, error) {
	var sets slinkyv1beta1.NodeSetList
	if err := p.List(ctx, &sets, p.options()...); err != nil {
		return "", fmt.Errorf("listing NodeSets%s: %w", inNamespace(p.namespace), err)
	}
	if p.name != "" && len(sets.Items) == 0 {
		return "", fmt.Errorf("there is no NodeSet %s in namespace %s", p.name, p.namespace)
	}
	plans := NewPlans(sets.Items)
	if p.name == "" {
		var err error
		if plans.Edits, err = p.edits(ctx); err != nil {
			return "", err
		}
	}
	return sets.ResourceVersion, p.print(plans)
}

// edits returns those that wait for jobs. A caller who may not list Controllers is warned once.
func (p *planner) edits(ctx context.Context) ([]WaitingEdit, error) {
	var list slinkyv1beta1.ControllerList
	err := p.List(ctx, &list, client.InNamespace(p.namespace))
	if apierrors.IsForbidden(err) {
		if p.printed == nil {
			fmt.Fprintln(p.Streams.ErrOut, "Note: edits that wait for jobs are not shown: you lack the right to list controllers.slinky.slurm.net")
		}
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing Controllers%s: %w", inNamespace(p.namespace), err)
	}
	return waitingEdits(list.Items), nil
}

func (p *planner) options() []client.ListOption {
	options := []client.ListOption{client.InNamespace(p.namespace)}
	if p.name != "" {
		options = append(options, client.MatchingFields{"metadata.name": p.name})
	}
	return options
}

// print prints plans, unless they are those that were printed last.
func (p *planner) print(plans Plans) error {
	var text bytes.Buffer
	done, err := writeData(&text, p.output, plans)
	if err == nil && !done {
		err = plans.write(&text, p.output == formatWide)
	}
	if err != nil || bytes.Equal(text.Bytes(), p.printed) {
		return err
	}
	separator := ""
	switch {
	case p.printed == nil:
	case p.output == formatYAML:
		separator = "---\n"
	case p.output != formatJSON:
		separator = "\n" + instant(p.Now()) + "\n"
	}
	p.printed = text.Bytes()
	if _, err := io.WriteString(p.Streams.Out, separator+text.String()); err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	return nil
}

// follow prints the plans whenever they change, until the context ends.
func (p *planner) follow(ctx context.Context, version string) error {
	for {
		err := p.watch(ctx, version)
		if err == nil {
			// A server ends every watch after some minutes, or answers that the version is too old.
			version, err = p.show(ctx)
		}
		if err != nil || ctx.Err() != nil {
			return unlessEnded(ctx, err)
		}
	}
}

// unlessEnded is err, or nil when the caller has ended what failed, as by Ctrl-C.
func unlessEnded(ctx context.Context, err error) error {
	select {
	case <-ctx.Done():
		return nil
	default:
		return err
	}
}

// watch follows one watch to its end.
func (p *planner) watch(ctx context.Context, version string) error {
	var sets slinkyv1beta1.NodeSetList
	options := append(p.options(), &client.ListOptions{Raw: rawFrom(version)})
	w, err := p.Watch(ctx, &sets, options...)
	if err != nil {
		return fmt.Errorf("watching NodeSets%s: %w", inNamespace(p.namespace), err)
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		switch event.Type {
		case watch.Error:
			if err := apierrors.FromObject(event.Object); !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
				return fmt.Errorf("watching NodeSets%s: %w", inNamespace(p.namespace), err)
			}
			return nil
		case watch.Added, watch.Modified, watch.Deleted:
			if _, err := p.show(ctx); err != nil {
				return err
			}
		case watch.Bookmark:
		}
	}
	return nil
}
