// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/coxswain-hpc/coxswain/test/walk"
)

func departs(t *testing.T, c *slurmCluster, _ *user) {
	uid := c.uid(t)
	if err := c.Delete(t.Context(), c.object()); err != nil {
		t.Fatal(err)
	}
	var left []string
	eventually(t, patient, "all but claims to go", func(ctx context.Context) error {
		var err error
		if left, err = c.inventory(ctx); err != nil {
			return err
		}
		var rest []string
		for _, o := range left {
			if !mayStay(o) {
				rest = append(rest, o)
			}
		}
		if len(rest) > 0 {
			return fmt.Errorf("there are still %v", rest)
		}
		return nil
	})
	t.Logf("left: %v", left)
	claims := slices.DeleteFunc(left, func(o string) bool { return !strings.HasPrefix(o, "PersistentVolumeClaim/") })
	eventually(t, soon, "an event that names the claims", func(ctx context.Context) error {
		var events corev1.EventList
		if err := c.List(ctx, &events, client.InNamespace(c.namespace)); err != nil {
			return err
		}
		for _, e := range events.Items {
			if e.InvolvedObject.UID == uid && e.Reason == "PersistentVolumeClaimsKept" {
				t.Logf("event: %s", e.Message)
				return namesAll(e.Message, claims, c.sample.Manifest)
			}
		}
		return errors.New("there is none")
	})
}

// returns makes the deleted cluster again: it has the state of slurmctld and the records of the database.
func returns(t *testing.T, c *slurmCluster, _ *user) {
	c.apply(t, c.sample.Manifest)
	c.awaitAvailable(t)
	alice := c.logsIn(t)
	alice.seesAccounted(t, 1)
	// slurmctld may take it for idle: it had no time to write down that the worker went, and it has not come back.
	eventually(t, soon, "worker-2, which has no pod, to take no jobs", func(ctx context.Context) error {
		out, err := alice.Run(ctx, "sinfo --noheader --Node --nodes=worker-2 --format=%T")
		if err == nil && !strings.HasPrefix(out, "drained") && !strings.HasPrefix(out, "down") {
			record, _ := alice.Run(ctx, "scontrol --oneliner show node worker-2")
			err = fmt.Errorf("sinfo says %q, scontrol %q", out, record)
		}
		return err
	})
	if job := alice.submits(t, "true\n"); job < 2 {
		t.Errorf("the next job has the number %d: slurmctld has forgotten its state", job)
	} else {
		alice.awaits(t, job, "COMPLETED")
		alice.seesAccounted(t, job)
	}
}

// namesAll checks that a message names the claims that are left, apart from those that the sample brought along.
func namesAll(message string, claims []string, sample walk.Manifest) error {
	for _, claim := range claims {
		name := strings.TrimPrefix(claim, "PersistentVolumeClaim/")
		own := slices.ContainsFunc(sample, func(o *unstructured.Unstructured) bool { return o.GetName() == name })
		if !own && !strings.Contains(message, name) {
			return fmt.Errorf("%q does not name %s", message, name)
		}
	}
	return nil
}

// mayStay is about what a deleted SlurmCluster may leave: its data, and what Kubernetes has in every namespace.
func mayStay(object string) bool {
	kind, name, _ := strings.Cut(object, "/")
	switch kind {
	case "PersistentVolumeClaim":
		return true
	case "ServiceAccount":
		return name == "default"
	case "ConfigMap":
		return name == "kube-root-ca.crt"
	}
	return false
}

// inventory returns all objects of the scene's namespace but events, as Kind/name.
func (s *scene) inventory(ctx context.Context) ([]string, error) {
	lists, err := discovery.ServerPreferredNamespacedResources(s.Clientset.Discovery())
	if err != nil {
		return nil, fmt.Errorf("asking for the kinds that there are: %w", err)
	}
	var out []string
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, fmt.Errorf("parsing a group: %w", err)
		}
		for _, r := range list.APIResources {
			if r.Kind == "Event" || !slices.Contains(r.Verbs, "list") {
				continue
			}
			objects := &metav1.PartialObjectMetadataList{}
			objects.SetGroupVersionKind(gv.WithKind(r.Kind + "List"))
			if err := s.List(ctx, objects, client.InNamespace(s.namespace)); err != nil {
				return nil, fmt.Errorf("listing %s: %w", r.Kind, err)
			}
			for _, o := range objects.Items {
				out = append(out, r.Kind+"/"+o.Name)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}
