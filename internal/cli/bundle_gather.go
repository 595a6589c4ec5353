// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/cli/redact"
)

// bundle is a support bundle that is written.
type bundle struct {
	*session
	*connection
	clientset kubernetes.Interface
	options   bundleOptions
	archive   *archive
	redactor  *redact.Redactor
	progress  progress
	// problems are what could not be read, a line each.
	problems []string
	// pods are the pods of the namespace.
	pods []corev1.Pod
}

// bundled returns the resources of the namespace whose objects are in a bundle.
func bundled() []schema.GroupVersionResource {
	var out []schema.GroupVersionResource
	for _, group := range []struct {
		version   schema.GroupVersion
		resources string
	}{
		{nebiusv1.GroupVersion, "slurmclusters"},
		{nebiusv1alpha1.GroupVersion, "nodesets activechecks nodeconfigurators jailedconfigs nodesetpowerstates"},
		{slinkyv1beta1.GroupVersion, "controllers accountings restapis loginsets nodesets tokens"},
		{corev1.SchemeGroupVersion, "pods services configmaps persistentvolumeclaims serviceaccounts"},
		{schema.GroupVersion{Group: "apps", Version: "v1"}, "statefulsets deployments daemonsets controllerrevisions"},
		{schema.GroupVersion{Group: "batch", Version: "v1"}, "jobs cronjobs"},
		{schema.GroupVersion{Group: "policy", Version: "v1"}, "poddisruptionbudgets"},
		{schema.GroupVersion{Group: "networking.k8s.io", Version: "v1"}, "networkpolicies"},
	} {
		for resource := range strings.FieldsSeq(group.resources) {
			out = append(out, group.version.WithResource(resource))
		}
	}
	return out
}

// gather fills the archive. The error is that the archive cannot be written; what cannot be read is a problem.
func (b *bundle) gather(ctx context.Context) error {
	for _, step := range []func(context.Context) error{b.secrets, b.objects, b.events, b.logs, b.slurm, b.versions} {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("reading namespace %s: %w", b.namespace, err)
		}
		if err := step(ctx); err != nil {
			return err
		}
	}
	if err := b.add("errors.txt", []byte(strings.Join(append(slices.Clone(b.problems), ""), "\n"))); err != nil {
		return err
	}
	return b.archive.close()
}

// fail records what could not be read. The API server's error names the right that is missing.
func (b *bundle) fail(what string, err error) {
	b.problems = append(b.problems, oneLine(b.redactor.Text(what+": "+err.Error())))
}

// add adds a file without secrets.
func (b *bundle) add(name string, content []byte) error {
	return b.archive.add(name, []byte(b.redactor.Text(string(content))))
}

// secrets reads the Secrets. Their values go nowhere but into the list of what is taken out.
func (b *bundle) secrets(ctx context.Context) error {
	b.progress.say("Secrets")
	list, err := b.clientset.CoreV1().Secrets(b.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		b.fail("Secrets", err)
		return nil
	}
	var values [][]byte
	var out bytes.Buffer
	for _, s := range list.Items {
		fmt.Fprintf(&out, "%s  %s\n", s.Name, s.Type)
		for _, key := range slices.Sorted(maps.Keys(s.Data)) {
			fmt.Fprintf(&out, "  %s  %d bytes\n", key, len(s.Data[key]))
			if !public(key) {
				values = append(values, s.Data[key])
			}
		}
	}
	b.redactor = redact.New(values...)
	return b.add("secrets.txt", out.Bytes())
}

// public reports whether the value under a key of a Secret is for everybody, and could as well be in a ConfigMap.
func public(key string) bool {
	return key == "ca.crt" || key == "tls.crt" || key == "namespace" || key == "username" || strings.HasSuffix(key, ".pub")
}

// objects reads all objects but Secrets.
func (b *bundle) objects(ctx context.Context) error {
	reader, err := dynamic.NewForConfig(b.config)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	for _, resource := range bundled() {
		b.progress.say("%s", resource.Resource)
		list, err := reader.Resource(resource).Namespace(b.namespace).List(ctx, metav1.ListOptions{})
		if apierrors.IsNotFound(err) {
			continue // the CRD is not installed
		}
		if err != nil {
			b.fail(resource.Resource, err)
			continue
		}
		for i := range list.Items {
			if err := b.object(resource, &list.Items[i]); err != nil {
				return err
			}
		}
	}
	return b.nodes(ctx, reader)
}

// object adds an object, and remembers it when it is a pod.
func (b *bundle) object(resource schema.GroupVersionResource, u *unstructured.Unstructured) error {
	if resource.Group == corev1.GroupName && resource.Resource == "pods" {
		var pod corev1.Pod
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &pod); err != nil {
			b.fail("pod "+u.GetName(), err)
			return nil
		}
		b.pods = append(b.pods, pod)
	}
	b.redactor.Object(u.Object)
	text, err := yaml.Marshal(u.Object)
	if err != nil {
		return fmt.Errorf("encoding %s %s: %w", resource.Resource, u.GetName(), err)
	}
	directory := resource.Resource
	if resource.Group != "" {
		directory += "." + resource.Group
	}
	return b.add("objects/"+directory+"/"+u.GetName()+".yaml", text)
}

// nodes reads the Kubernetes nodes on which pods of the namespace run.
func (b *bundle) nodes(ctx context.Context, reader dynamic.Interface) error {
	names := map[string]bool{}
	for _, p := range b.pods {
		if p.Spec.NodeName != "" {
			names[p.Spec.NodeName] = true
		}
	}
	resource := corev1.SchemeGroupVersion.WithResource("nodes")
	for _, name := range slices.Sorted(maps.Keys(names)) {
		b.progress.say("Node %s", name)
		node, err := reader.Resource(resource).Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsForbidden(err):
			b.fail("nodes", err)
			return nil // it is the same for all
		case err != nil:
			b.fail("Node "+name, err)
			continue
		}
		if err := b.object(resource, node); err != nil {
			return err
		}
	}
	return nil
}

// events reads the events of the namespace.
func (b *bundle) events(ctx context.Context) error {
	b.progress.say("events")
	list, err := b.clientset.CoreV1().Events(b.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		b.fail("events", err)
		return nil
	}
	last := func(e corev1.Event) time.Time {
		for _, at := range []time.Time{e.LastTimestamp.Time, e.EventTime.Time} {
			if !at.IsZero() {
				return at
			}
		}
		return e.CreationTimestamp.Time
	}
	slices.SortStableFunc(list.Items, func(a, b corev1.Event) int {
		return cmp.Or(last(a).Compare(last(b)), cmp.Compare(a.Name, b.Name))
	})
	var out bytes.Buffer
	for _, e := range list.Items {
		fmt.Fprintf(&out, "%s  %s  %s  %s/%s  x%d  %s\n", last(e).UTC().Format(time.RFC3339), e.Type, e.Reason, e.InvolvedObject.Kind, e.InvolvedObject.Name,
			max(e.Count, 1), oneLine(e.Message))
	}
	return b.add("events.txt", out.Bytes())
}

// versions adds the versions of the programs.
func (b *bundle) versions(context.Context) error {
	var out bytes.Buffer
	fmt.Fprintf(&out, "kubectl-slurm  %s\n", b.Version)
	if server, err := b.clientset.Discovery().ServerVersion(); err != nil {
		b.fail("version of Kubernetes", err)
	} else {
		fmt.Fprintf(&out, "Kubernetes  %s\n", server.GitVersion)
	}
	images := map[string]int{}
	for _, p := range b.pods {
		for _, status := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
			images[status.Image+"  "+status.ImageID]++
		}
	}
	for _, image := range slices.Sorted(maps.Keys(images)) {
		fmt.Fprintf(&out, "image  %s  in %d containers\n", image, images[image])
	}
	return b.add("versions.txt", out.Bytes())
}
