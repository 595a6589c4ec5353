// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/coxswain-hpc/coxswain/internal/cli/lint"
)

const restoreHelp = `Puts back what "kubectl slurm backup" has written: first Secrets and ConfigMaps, then the objects of both API groups.

Before it writes anything, it applies all objects with dry-run, and compares the Secrets. A Secret that exists with other values is not
overwritten: running daemons use its keys, and jobs and tokens would be lost. Fields that another field manager has set to other values are
not overwritten either. --force overwrites both.

The objects are written to the namespace of --namespace, or of the context. The name of the Slurm cluster may depend on the namespace. In
another namespace, existing volumes with slurmctld's state then belong to another cluster.

Rights: get Secrets; create and patch everything that is in the file.

Exit codes: 0 everything is restored, 1 an error, 2 nothing was written, because keys or fields differ.`

const restoreExamples = `  kubectl slurm restore -n slurm -f slurm.yaml

  # See whether it would work
  kubectl slurm restore -n slurm -f slurm.yaml --dry-run`

func (s *session) restoreCommand(ctx context.Context) *cobra.Command {
	var file string
	var r restorer
	command := &cobra.Command{
		Use: "restore -f FILE|-", Short: "Put objects and keys of clusters back", Long: restoreHelp, Example: restoreExamples, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			sources, err := s.readAll([]string{file})
			if err != nil {
				return err
			}
			c, err := s.connect()
			if err != nil {
				return err
			}
			r.session, r.connection = s, c
			for _, source := range sources {
				if err := r.read(source); err != nil {
					return err
				}
			}
			return r.restore(ctx)
		},
	}
	command.Flags().StringVarP(&file, "filename", "f", "", "File of kubectl slurm backup, or - for standard input. Required.")
	_ = command.MarkFlagRequired("filename")
	command.Flags().BoolVar(&r.force, "force", false, "Overwrite keys that differ, and fields that another field manager has set.")
	command.Flags().BoolVar(&r.dryRun, "dry-run", false, "Write nothing.")
	return command
}

// restorer puts a backup back.
type restorer struct {
	*session
	*connection
	force, dryRun bool
	// objects are in the order in which they are applied.
	objects []*unstructured.Unstructured
}

// read takes the objects of a file up, and refuses what no backup has.
func (r *restorer) read(source lint.Source) error {
	objects, err := lint.Documents(source)
	if err != nil {
		return fmt.Errorf("reading %s: %w", source.Name, err)
	}
	for _, u := range objects {
		if _, ok := placeOf(u.GroupVersionKind()); !ok || u.GetName() == "" {
			return fmt.Errorf("reading %s: %s %q of %q is not part of a backup", source.Name, u.GetKind(), u.GetName(), u.GetAPIVersion())
		}
		if u.GetNamespace() != "" && u.GetNamespace() != r.namespace {
			return fmt.Errorf("reading %s: %s %s belongs to namespace %s, but namespace %s was chosen", source.Name, u.GetKind(), u.GetName(), u.GetNamespace(), r.namespace)
		}
		u.SetNamespace(r.namespace)
		r.objects = append(r.objects, u)
	}
	slices.SortStableFunc(r.objects, func(a, b *unstructured.Unstructured) int {
		before, _ := placeOf(a.GroupVersionKind())
		behind, _ := placeOf(b.GroupVersionKind())
		return before - behind
	})
	return nil
}

// restore looks whether everything can be applied, and then applies it.
func (r *restorer) restore(ctx context.Context) error {
	if len(r.objects) == 0 {
		return errors.New("the file is empty")
	}
	var obstacles []string
	for _, u := range r.objects {
		if u.GetKind() != "Secret" || r.force {
			continue
		}
		keys, err := r.otherKeys(ctx, u)
		if err != nil {
			return err
		}
		if len(keys) > 0 {
			obstacles = append(obstacles, fmt.Sprintf("Secret %s exists with other values of %s", u.GetName(), strings.Join(keys, ", ")))
		}
	}
	for _, u := range r.objects {
		err := r.apply(ctx, u.DeepCopy(), client.DryRunAll)
		switch {
		case apierrors.IsConflict(err):
			obstacles = append(obstacles, err.Error())
		case err != nil:
			return err
		}
	}
	if len(obstacles) > 0 {
		return exit{code: exitWrong, err: fmt.Errorf("nothing was written; --force would overwrite:\n%s", strings.Join(obstacles, "\n"))}
	}
	done := "restored"
	if r.dryRun {
		done = "would be restored"
	}
	for _, u := range r.objects {
		if !r.dryRun {
			if err := r.apply(ctx, u); err != nil {
				return err
			}
		}
		fmt.Fprintf(r.Streams.Out, "%s/%s %s\n", oneLine(u.GetKind()), oneLine(u.GetName()), done)
	}
	return nil
}

// apply applies an object by server-side apply.
func (r *restorer) apply(ctx context.Context, u *unstructured.Unstructured, options ...client.ApplyOption) error {
	options = append(options, client.FieldOwner(fieldManager))
	if r.force {
		options = append(options, client.ForceOwnership)
	}
	if err := r.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), options...); err != nil {
		return fmt.Errorf("restoring %s %s/%s: %w", u.GetKind(), r.namespace, u.GetName(), err)
	}
	return nil
}

// otherKeys returns the keys of a Secret whose values are other ones in the cluster. One that is not there has none.
func (r *restorer) otherKeys(ctx context.Context, u *unstructured.Unstructured) ([]string, error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(u.GroupVersionKind())
	err := r.Get(ctx, client.ObjectKeyFromObject(u), live)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Secret %s/%s: %w", r.namespace, u.GetName(), err)
	}
	is, _, _ := unstructured.NestedMap(live.Object, "data")
	want, _, _ := unstructured.NestedMap(u.Object, "data")
	var out []string
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if value, ok := is[key]; !ok || !reflect.DeepEqual(value, want[key]) {
			out = append(out, key)
		}
	}
	return out, nil
}
