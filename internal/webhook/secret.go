// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
)

const (
	// protectedLabel is the one by which the configuration selects as well, so that other Secrets never come here.
	protectedLabel    = nebiusv1.LabelProtected
	clusterAnnotation = nebiusv1.AnnotationProtectedFor
)

// protector keeps Secrets without which a SlurmCluster loses its database:
// docs/contributors/predecessors/soperator-installation.md#protected-secrets.
type protector struct {
	live    client.Reader
	options Options
}

func (p *protector) protects(s *corev1.Secret) bool {
	return s.Labels[protectedLabel] == "true" && p.options.covers(s.Namespace)
}

// ValidateCreate refuses a protected Secret that does not name its owner.
func (p *protector) ValidateCreate(_ context.Context, s *corev1.Secret) (admission.Warnings, error) {
	if p.protects(s) && s.Annotations[clusterAnnotation] == "" {
		return nil, fmt.Errorf("a Secret with label %s=true needs annotation %s with the name of the SlurmCluster that it belongs to", protectedLabel, clusterAnnotation)
	}
	return nil, nil
}

// ValidateUpdate refuses changes of the content of the Secret and of its owner. Finalizers and owners may change, or
// it could never go.
func (p *protector) ValidateUpdate(_ context.Context, old, s *corev1.Secret) (admission.Warnings, error) {
	if !p.protects(old) || old.DeletionTimestamp != nil {
		return nil, nil
	}
	if equality.Semantic.DeepEqual(old.Data, s.Data) && old.Type == s.Type &&
		maps.Equal(old.Labels, s.Labels) && maps.Equal(old.Annotations, s.Annotations) {
		return nil, nil
	}
	return nil, fmt.Errorf("the Secret is protected by label %s=true and must not be changed: a running database knows its content", protectedLabel)
}

// ValidateDelete refuses the end of a protected Secret while its SlurmCluster is there, or that cannot be found out.
func (p *protector) ValidateDelete(ctx context.Context, s *corev1.Secret) (admission.Warnings, error) {
	name := s.Annotations[clusterAnnotation]
	if !p.protects(s) || name == "" {
		return nil, nil
	}
	cluster := &nebiusv1.SlurmCluster{}
	err := p.live.Get(ctx, types.NamespacedName{Namespace: s.Namespace, Name: name}, cluster)
	switch {
	case apierrors.IsNotFound(err), err == nil && cluster.DeletionTimestamp != nil:
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading SlurmCluster %s/%s, to which the Secret belongs: %w", s.Namespace, name, err)
	}
	return nil, fmt.Errorf("the Secret belongs to SlurmCluster %s and is protected by label %s=true: delete the SlurmCluster first", name, protectedLabel)
}
