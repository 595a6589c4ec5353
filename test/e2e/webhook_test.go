// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/coxswain-hpc/coxswain/test/walk"
)

// TestWebhook sees the webhook of the chart refuse what only a parser finds, with a certificate that it made itself, and
// objects get through while it is down.
func TestWebhook(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	mistake := func(ctx context.Context) error {
		o := mistaken(t, `{apiVersion: slinky.slurm.net/v1beta1, kind: Controller, metadata: {name: mistake}, spec: {extraConf: "ClusterName=evil"}}`)
		o.SetNamespace(s.namespace)
		return s.ApplyManifest(ctx, walk.Manifest{o})
	}
	// Right after the installation the webhook waits for the kubelet to bring it its certificate.
	eventually(t, patient, "the webhook to refuse", func(ctx context.Context) error {
		err := mistake(ctx)
		if err == nil {
			// A mistake that is there already is admitted again.
			o := mistaken(t, `{apiVersion: slinky.slurm.net/v1beta1, kind: Controller, metadata: {name: mistake}}`)
			o.SetNamespace(s.namespace)
			return errors.Join(errors.New("the mistake is admitted"), s.Delete(ctx, o))
		}
		if !strings.Contains(err.Error(), "spec.extraConf: Invalid value: line 1: ClusterName: it is set by the operator") {
			t.Fatalf("the refusal does not say what is wrong: %v", err)
		}
		return nil
	})

	webhook := types.NamespacedName{Namespace: walk.Operator.Namespace, Name: walk.Operator.Name + "-webhook"}
	scale := func(replicas int32) {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: webhook.Namespace, Name: webhook.Name}}
		before := d.DeepCopy()
		d.Spec.Replicas = &replicas
		if err := s.Patch(context.WithoutCancel(t.Context()), d, client.MergeFrom(before)); err != nil {
			t.Fatalf("scaling the webhook: %v", err)
		}
	}
	scale(0)
	defer scale(1)
	eventually(t, patient, "objects to be admitted without the webhook", mistake)
}

// ignoreWebhooks has objects of the scene admitted without the webhook.
func (s *scene) ignoreWebhooks(t *testing.T) {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
	before := namespace.DeepCopy()
	namespace.Labels = map[string]string{"coxswain.dev/webhooks": "ignore"}
	if err := s.Patch(t.Context(), namespace, client.MergeFrom(before)); err != nil {
		t.Fatalf("labelling namespace %s: %v", s.namespace, err)
	}
}
