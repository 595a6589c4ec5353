// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/cli/lint"
	"github.com/coxswain-hpc/coxswain/internal/cli/preview"
)

const diffHelp = `Shows what "kubectl apply --server-side" of manifests would change: first the objects in the files, then the objects that the operator
makes from them and from the other objects in the namespace.

The objects in the files are applied with dry-run: the API server fills in defaults, asks its webhooks and changes nothing. What the
operator makes is computed twice, from the objects that exist and from those that would exist, and compared. Changes that others made to
the operator's objects are therefore not shown; the operator reverts them in any case.

A field that is no longer in the files is shown as removed if --field-manager has set it, as with "kubectl diff --server-side". Objects of
API groups other than slurm.nebius.ai, slinky.slurm.net and core are ignored.

` + notKnown + `

For a partition that would be removed, a note shows which jobs need it now, and the annotation that would end them. If you may list pods,
and get and create pods/exec, the command asks squeue in a login pod for that.

Rights: get and patch what is in the files; list the kinds of both groups, and configmaps. It reads no Secrets except those in the files.

Exit codes: 0 nothing would change, 1 something would, 2 an error, or the operator would refuse an object.`

const diffExamples = `  # Before an apply
  kubectl slurm diff -f cluster.yaml && echo "nothing changes"

  # What Helm would change in the objects that the operator makes
  helm template demo | kubectl slurm diff -f -`

func (s *session) diffCommand(ctx context.Context) *cobra.Command {
	var flags renderFlags
	var manager string
	command := &cobra.Command{
		Use: "diff -f FILE|DIR|-", Short: "Show what manifests would change", Long: diffHelp, Example: diffExamples, Args: cobra.NoArgs,
		Annotations: map[string]string{remoteAnnotation: ""},
		RunE: func(*cobra.Command, []string) error {
			changed, err := s.diff(ctx, flags, manager)
			var end exit
			switch {
			case errors.As(err, &end):
				return err
			case err != nil:
				return exit{code: exitWrong, err: err}
			case changed:
				return exit{code: exitError}
			}
			return nil
		},
	}
	flags.addTo(command)
	command.Flags().StringVar(&manager, "field-manager", "kubectl", "Field manager with which the manifests are applied.")
	return command
}

// diff prints all differences and reports whether there are any.
func (s *session) diff(ctx context.Context, flags renderFlags, manager string) (bool, error) {
	sources, err := s.readAll(flags.files)
	if err != nil {
		return false, err
	}
	c, err := s.connect()
	if err != nil {
		return false, err
	}
	d := &differ{session: s, connection: c, manager: manager}
	for _, source := range sources {
		objects, err := lint.Documents(source)
		if err != nil {
			return false, fmt.Errorf("reading %s: %w", source.Name, err)
		}
		for _, u := range objects {
			if err := d.apply(ctx, u); err != nil {
				return false, err
			}
		}
	}
	before, err := d.world(ctx)
	if err != nil {
		return false, err
	}
	after, err := d.changed(before)
	if err != nil {
		return false, err
	}
	was, err := preview.Make(ctx, flags.input(before))
	if err != nil {
		return false, err
	}
	is, err := preview.Make(ctx, flags.input(after))
	if err != nil {
		return false, err
	}
	if err := d.compareMade(was.Made, is.Made); err != nil {
		return false, err
	}
	known := func(text string) bool { return slices.Contains(was.Mistakes, text) || slices.Contains(was.Notes, text) }
	is.Mistakes, is.Notes = slices.DeleteFunc(is.Mistakes, known), slices.DeleteFunc(is.Notes, known)
	is.Notes = append(is.Notes, d.waits(ctx, was.Waits, is.Waits)...)
	return d.differs, s.complain(nil, is)
}

// differ compares what is there with what would be there.
type differ struct {
	*session
	*connection
	manager string
	// applied are the objects of the files as they would be.
	applied []*unstructured.Unstructured
	// differs is true if a difference was printed.
	differs bool
}

// apply lets the API server apply an object without keeping it, and prints what that would change.
func (d *differ) apply(ctx context.Context, u *unstructured.Unstructured) error {
	name := u.GetKind() + "/" + u.GetName()
	if !d.Scheme().Recognizes(u.GroupVersionKind()) {
		fmt.Fprintf(d.Streams.ErrOut, "Note: %s: objects of %q are ignored\n", oneLine(name), u.GetAPIVersion())
		return nil
	}
	mapping, err := d.RESTMapper().RESTMapping(u.GroupVersionKind().GroupKind(), u.GroupVersionKind().Version)
	if err != nil {
		return fmt.Errorf("finding the resource of %s: %w", name, err)
	}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace && u.GetNamespace() == "" {
		u.SetNamespace(d.namespace)
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(u.GroupVersionKind())
	err = d.Get(ctx, client.ObjectKeyFromObject(u), live)
	switch {
	case apierrors.IsNotFound(err):
		live = nil
	case err != nil:
		return fmt.Errorf("reading %s: %w", name, err)
	}
	err = d.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.DryRunAll, client.FieldOwner(d.manager), client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("applying %s with dry-run: %w", name, err)
	}
	d.applied = append(d.applied, u)
	return d.compare("", live, u)
}

// world returns the objects that the operator would look at in the namespaces of the files.
func (d *differ) world(ctx context.Context) ([]client.Object, error) {
	var namespaces []string
	for _, u := range d.applied {
		if u.GetNamespace() != "" && !slices.Contains(namespaces, u.GetNamespace()) {
			namespaces = append(namespaces, u.GetNamespace())
		}
	}
	var out []client.Object
	for _, namespace := range namespaces {
		for _, list := range []client.ObjectList{
			&nebiusv1.SlurmClusterList{}, &nebiusv1alpha1.NodeSetList{}, &nebiusv1alpha1.NodeConfiguratorList{},
			&slinkyv1beta1.ControllerList{}, &slinkyv1beta1.AccountingList{}, &slinkyv1beta1.RestApiList{}, &slinkyv1beta1.LoginSetList{},
			&slinkyv1beta1.NodeSetList{}, &slinkyv1beta1.TokenList{}, &corev1.ConfigMapList{},
		} {
			err := d.List(ctx, list, client.InNamespace(namespace))
			if apierrors.IsNotFound(err) {
				continue // the CRD is not installed
			}
			if err != nil {
				return nil, fmt.Errorf("listing what the operator reads in namespace %s: %w", namespace, err)
			}
			if err := meta.EachListItem(list, func(o runtime.Object) error {
				if o, ok := o.(client.Object); ok {
					out = append(out, o)
				}
				return nil
			}); err != nil {
				return nil, fmt.Errorf("reading a list of namespace %s: %w", namespace, err)
			}
		}
	}
	return out, nil
}

// changed returns the objects as they would be after the apply.
func (d *differ) changed(before []client.Object) ([]client.Object, error) {
	after := slices.Clone(before)
	for _, u := range d.applied {
		typed, err := d.Scheme().New(u.GroupVersionKind())
		if err == nil {
			err = runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, typed)
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s %s: %w", u.GetKind(), u.GetName(), err)
		}
		o, ok := typed.(client.Object)
		if !ok {
			continue
		}
		i := slices.IndexFunc(after, func(other client.Object) bool {
			return fmt.Sprintf("%T", other) == fmt.Sprintf("%T", o) && client.ObjectKeyFromObject(other) == client.ObjectKeyFromObject(o)
		})
		if i >= 0 {
			after[i] = o
		} else {
			after = append(after, o)
		}
	}
	return after, nil
}

// compareMade prints how what the operator makes differs, in the order in which it is made, and then what it no longer makes.
func (d *differ) compareMade(was, is []preview.Made) error {
	find := func(in []preview.Made, u *unstructured.Unstructured) *preview.Made {
		for i := range in {
			o := in[i].Object
			if o.GroupVersionKind() == u.GroupVersionKind() && o.GetNamespace() == u.GetNamespace() && o.GetName() == u.GetName() {
				return &in[i]
			}
		}
		return nil
	}
	for _, m := range is {
		var before *unstructured.Unstructured
		if old := find(was, m.Object); old != nil {
			before = old.Object
		}
		if err := d.compare(m.Of, before, m.Object); err != nil {
			return err
		}
	}
	for _, m := range was {
		if find(is, m.Object) == nil {
			if err := d.compare(m.Of, m.Object, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// plainObject returns a copy of an object without what the API server and controllers write: what users mean.
func plainObject(u *unstructured.Unstructured) *unstructured.Unstructured {
	out := u.DeepCopy()
	unstructured.RemoveNestedField(out.Object, "status")
	for _, field := range []string{"managedFields", "resourceVersion", "uid", "generation", "creationTimestamp", "selfLink"} {
		unstructured.RemoveNestedField(out.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(out.Object, "metadata", "annotations", corev1.LastAppliedConfigAnnotation)
	if len(out.GetAnnotations()) == 0 {
		unstructured.RemoveNestedField(out.Object, "metadata", "annotations")
	}
	return out
}
