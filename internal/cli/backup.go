// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

const backupHelp = `Writes a file from which the Slurm clusters of a namespace can be created again: the objects of both API groups, and the Secrets and
ConfigMaps that they name, including generated keys.

THE FILE HAS THE KEYS AND PASSWORDS IN IT. Whoever reads it can be any user of the clusters. It has mode 0600; keep it encrypted.

It does not contain: what the operator makes from the objects; the state of slurmctld, the accounting database, the jail and other
volumes; PodTemplates that ActiveChecks name.

Rights: list the kinds of both groups; get the Secrets and ConfigMaps. If one is missing, nothing is written.

Exit codes: 0 the file is written, 1 an error.`

const backupExamples = `  kubectl slurm backup -n slurm --file=slurm.yaml

  # Never on a disk without encryption
  kubectl slurm backup -n slurm --file=- | age -r RECIPIENT > slurm.yaml.age`

// backupHeader is the beginning of the file.
const backupHeader = `# WARNING: this file has keys and passwords in it. Whoever reads it can be any user of these Slurm clusters.
# Written by kubectl slurm backup of namespace %s. "kubectl slurm restore -f FILE" puts it back, into the namespace that is chosen then.
`

// backedUp returns the kinds of both groups in the order in which they are restored: what others refer to comes first. Secrets and
// ConfigMaps come before all of them, so that the operator generates no other keys.
func backedUp() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{
		nebiusv1alpha1.GroupVersion.WithKind("NodeSet"), nebiusv1.GroupVersion.WithKind("SlurmCluster"),
		nebiusv1alpha1.GroupVersion.WithKind("NodeConfigurator"), nebiusv1alpha1.GroupVersion.WithKind("JailedConfig"),
		nebiusv1alpha1.GroupVersion.WithKind("ActiveCheck"), nebiusv1alpha1.GroupVersion.WithKind("NodeSetPowerState"),
		slinkyv1beta1.GroupVersion.WithKind("Accounting"), slinkyv1beta1.GroupVersion.WithKind("NodeSet"),
		slinkyv1beta1.GroupVersion.WithKind("Controller"), slinkyv1beta1.GroupVersion.WithKind("RestApi"),
		slinkyv1beta1.GroupVersion.WithKind("LoginSet"), slinkyv1beta1.GroupVersion.WithKind("Token"),
	}
}

func (s *session) backupCommand(ctx context.Context) *cobra.Command {
	var path string
	command := &cobra.Command{
		Use: "backup --file FILE", Short: "Write objects and keys of clusters to a file", Long: backupHelp, Example: backupExamples, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if path == "-" && isOutputTerminal(s.Streams.Out) {
				return errors.New("the backup contains keys and is not printed on a terminal: give --file=FILE, or pipe the output")
			}
			c, err := s.connect()
			if err != nil {
				return err
			}
			objects, err := s.readBackup(ctx, c)
			if err != nil {
				return err
			}
			return s.writeBackup(path, c.namespace, objects)
		},
	}
	command.Flags().StringVarP(&path, "file", "f", "", "File to write, or - for standard output. The file must not exist. Required.")
	_ = command.MarkFlagRequired("file")
	return command
}

// readBackup reads all that belongs into a backup, in the order in which it is restored.
func (s *session) readBackup(ctx context.Context, c *connection) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	refs := newReferences()
	for _, kind := range backedUp() {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		err := c.List(ctx, list, client.InNamespace(c.namespace))
		if apierrors.IsNotFound(err) {
			continue // the CRD is not installed
		}
		if err != nil {
			return nil, fmt.Errorf("listing %s of %s%s: %w", kind.Kind, kind.Group, inNamespace(c.namespace), err)
		}
		for i := range list.Items {
			u := &list.Items[i]
			if err := refs.of(u); err != nil {
				return nil, err
			}
			if metav1.GetControllerOf(u) == nil { // the operator makes the others again
				objects = append(objects, portable(u))
			}
		}
	}
	if len(objects) == 0 {
		return nil, fmt.Errorf("there is no object of slurm.nebius.ai or slinky.slurm.net%s", inNamespace(c.namespace))
	}
	var named []*unstructured.Unstructured
	for _, group := range []struct {
		kind  string
		names []string
	}{{"Secret", refs.names("Secret")}, {"ConfigMap", refs.names("ConfigMap")}} {
		for _, name := range group.names {
			u := &unstructured.Unstructured{}
			u.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(group.kind))
			err := c.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: name}, u)
			switch {
			case apierrors.IsNotFound(err) && !refs[group.kind][name]:
			case apierrors.IsNotFound(err):
				fmt.Fprintf(s.Streams.ErrOut, "Note: %s %s does not exist, but an object refers to it\n", group.kind, name)
			case err != nil:
				return nil, fmt.Errorf("reading %s %s/%s: %w", group.kind, c.namespace, name, err)
			case metav1.GetControllerOf(u) == nil:
				named = append(named, portable(u))
			}
		}
	}
	return slices.Concat(named, objects), nil
}

// portable returns an object in a form that can be created in any namespace.
func portable(u *unstructured.Unstructured) *unstructured.Unstructured {
	out := plainObject(u)
	for _, field := range []string{"namespace", "ownerReferences", "finalizers"} {
		unstructured.RemoveNestedField(out.Object, "metadata", field)
	}
	return out
}

// writeBackup writes the file. One that only its owner can read.
func (s *session) writeBackup(path, namespace string, objects []*unstructured.Unstructured) (err error) {
	var text bytes.Buffer
	fmt.Fprintf(&text, backupHeader, namespace)
	keys := 0
	for _, u := range objects {
		document, err := yaml.Marshal(u.Object)
		if err != nil {
			return fmt.Errorf("encoding %s %s: %w", u.GetKind(), u.GetName(), err)
		}
		text.WriteString("---\n")
		text.Write(document)
		if u.GetKind() == "Secret" {
			keys++
		}
	}
	if path == "-" {
		if _, err := s.Streams.Out.Write(text.Bytes()); err != nil {
			return fmt.Errorf("writing: %w", err)
		}
	} else if err := writeOnce(path, text.Bytes()); err != nil {
		return err
	}
	fmt.Fprintf(s.Streams.ErrOut, "%d objects are written, %d of them Secrets. WARNING: whoever reads the file can be any user of the clusters. Keep it encrypted.\n",
		len(objects), keys)
	return nil
}

// writeOnce writes a file that is not there, and that its owner alone can read. One that cannot be written to its end is deleted.
func writeOnce(path string, content []byte) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) //nolint:gosec // the user names it
	if err != nil {
		return fmt.Errorf("making the file: %w", err)
	}
	_, err = file.Write(content)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return errors.Join(fmt.Errorf("writing %s: %w", path, err), os.Remove(path))
	}
	return nil
}

// placeOf is the place of a kind in the order of a restore; false for one that no backup has.
func placeOf(kind schema.GroupVersionKind) (int, bool) {
	all := append([]schema.GroupVersionKind{corev1.SchemeGroupVersion.WithKind("Secret"), corev1.SchemeGroupVersion.WithKind("ConfigMap")}, backedUp()...)
	place := slices.Index(all, kind)
	return place, place >= 0
}
